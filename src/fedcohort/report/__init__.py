"""What a reader sees of runs: pages, tables and figures."""
