"""Datasets: loaders that return samples and labels as arrays; `base.py` is their contract."""
