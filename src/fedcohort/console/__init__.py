"""What a run prints: its facts, its progress and its result."""
