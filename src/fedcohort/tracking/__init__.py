"""MLflow: a run's metrics and files are sent exactly once, from its journal; the only package that imports MLflow."""
