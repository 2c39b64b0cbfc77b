"""One communication round: queries, selection, local work, costs, aggregation and report."""
