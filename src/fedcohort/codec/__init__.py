"""Codecs: what an upload costs, and what the server receives; `base.py` is their contract."""
