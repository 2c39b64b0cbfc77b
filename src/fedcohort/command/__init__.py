"""The commands of `fedcohort COMMAND`, each a module with a function `main`."""
