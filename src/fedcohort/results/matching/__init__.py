"""Matching of runs for comparisons: runs with the same setting, condition and seed."""
