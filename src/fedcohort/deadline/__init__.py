"""When a round closes."""
