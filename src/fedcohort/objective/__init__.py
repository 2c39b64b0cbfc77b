"""Local objectives: the losses that clients minimise; `base.py` is their contract."""
