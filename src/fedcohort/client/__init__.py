"""Local optimizers of clients; `base.py` is their contract."""
