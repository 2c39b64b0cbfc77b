"""Observers of the rounds: progress, journal, tracking, figures, summary."""
