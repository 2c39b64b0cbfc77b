"""Terminal output of a run: its configuration, progress and result."""
