"""Reports on runs: pages, tables and figures."""
