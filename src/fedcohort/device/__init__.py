"""Device models: how long clients take, in virtual seconds; `base.py` is their contract."""
