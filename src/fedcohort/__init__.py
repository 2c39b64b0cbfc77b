"""fedcohort: client selection in heterogeneous federated learning, compared fairly."""

__version__ = "0.1.0"
