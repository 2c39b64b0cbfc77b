"""Whose inputs are disturbed, and how much."""
