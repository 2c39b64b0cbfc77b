"""The run: rounds, local training, evaluation, ranks."""
