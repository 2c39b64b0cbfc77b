"""Which local samples train."""
