"""fedcohort: client selection in heterogeneous federated learning, compared fairly.

    import fedcohort

    result = fedcohort.run(selector="flash", agg="scaffold", rounds=20)
    sweep = fedcohort.sweep(selector=["random", "flash"], seed=range(3))
    fedcohort.compare(sweep)

The import is cheap: PyTorch, Hydra and pandas are imported by the first call that needs them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedcohort.api.comparison import Comparison, compare
    from fedcohort.api.run import RunResult, run
    from fedcohort.api.sweep import SweepResult, sweep
    from fedcohort.errors import FedcohortError

__version__ = "0.1.0"
__all__ = ["Comparison", "FedcohortError", "RunResult", "SweepResult", "__version__", "compare", "run", "sweep"]

_MODULE_BY_NAME = {
    "run": "api.run",
    "RunResult": "api.run",
    "sweep": "api.sweep",
    "SweepResult": "api.sweep",
    "compare": "api.comparison",
    "Comparison": "api.comparison",
    "FedcohortError": "errors",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a function or a class
    """Return the function or class `name` of the Python interface; its module is imported at the first use.

    Raises:
        AttributeError: the interface has no such name.
    """
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'fedcohort' has no attribute {name!r}; it has {', '.join(_MODULE_BY_NAME)}")
    return getattr(import_module(f"fedcohort.{_MODULE_BY_NAME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
