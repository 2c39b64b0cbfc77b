"""Which clients are ready."""
