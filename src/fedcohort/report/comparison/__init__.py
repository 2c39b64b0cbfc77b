"""The comparison of runs as tables, figures and a page."""
