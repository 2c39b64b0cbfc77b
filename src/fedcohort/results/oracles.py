"""Which selectors are oracles, by name."""

import importlib
import importlib.util
from functools import cache

from fedcohort.signal.base import unknowable_signals


@cache
def reads_unknowable(name: str) -> bool:
    """Return whether the selector of this name always reads signals that no server could receive.

    A variant has no module under its name, so that the result is False.
    """
    path = f"fedcohort.selector.{name}"
    if not name.isidentifier() or importlib.util.find_spec(path) is None:
        return False
    module = importlib.import_module(path)
    needs = [vars(member).get("needs") for member in vars(module).values() if isinstance(member, type)]
    return any(isinstance(names, frozenset) and unknowable_signals(names) for names in needs)
