"""The round as Lightning's loop, module, data and callbacks; the only package that imports Lightning."""

from fedcohort.lightning.deferred_imports import defer_slow_imports

with defer_slow_imports():
    import lightning.pytorch  # noqa: F401 - before the other modules of this package import parts of it
