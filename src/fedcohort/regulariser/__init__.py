"""Regularisers: terms that are added to a local objective; `base.py` is their contract."""
