"""Neural networks that clients train; `base.py` is their contract."""
