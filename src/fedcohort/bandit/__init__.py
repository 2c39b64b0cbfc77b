"""Bandit algorithms that selectors share."""
