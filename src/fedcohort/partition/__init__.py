"""Partitions of training samples among clients; `base.py` is their contract."""
