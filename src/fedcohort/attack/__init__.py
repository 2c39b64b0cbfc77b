"""Attacks: clients that report false numbers; `base.py` is their contract."""
