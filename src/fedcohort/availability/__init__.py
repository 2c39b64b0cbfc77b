"""Availability models: which clients are ready; `base.py` is their contract."""
