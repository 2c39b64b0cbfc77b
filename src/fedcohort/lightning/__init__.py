"""The round as Lightning's loop, module, data and callbacks; the only package that imports Lightning."""

from fedcohort.lightning.deferred_imports import deferred

with deferred():
    import lightning.pytorch  # noqa: F401 - before the other modules of this package import parts of it
