"""Server optimizers: how the aggregated direction is applied; `base.py` is their contract."""
