"""The Python interface: `fedcohort.run`, `fedcohort.sweep` and `fedcohort.compare`, which do what the commands do."""
