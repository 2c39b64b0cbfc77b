"""Whose labels are wrong, and how often."""
