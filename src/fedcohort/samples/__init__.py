"""Sample selection: which of their samples clients train on; `base.py` is the contract."""
