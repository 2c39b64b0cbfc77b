"""Studies: grids of settings, methods and seeds, with their runs, results and reports."""
