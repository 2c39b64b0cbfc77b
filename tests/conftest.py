"""Shapes and types are checked at run time in every test (they cost nothing outside of them)."""

from jaxtyping import install_import_hook

hook = install_import_hook("fedcohort", "typecheck.check")
