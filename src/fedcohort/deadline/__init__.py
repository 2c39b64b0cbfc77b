"""Deadlines: one module per rule that closes a round; `base.py` is their contract."""
