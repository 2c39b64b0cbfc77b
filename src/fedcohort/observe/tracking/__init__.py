"""How a run gets into MLflow: where, as which run, with which facts, and exactly once."""
