"""Runs side by side: means over seeds, paired differences to a baseline, and what keeps runs from being compared."""
