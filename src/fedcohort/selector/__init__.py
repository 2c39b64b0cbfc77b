"""Client selectors: one module per method; `base.py` is their contract."""
