"""Studies: which regimes, which selectors, which seeds; what was run of them, and the page that is written from it."""
