"""Import Lightning without two large modules that its import loads and a run does not use.

Lightning 2.6.6 reads two names of `torch._dynamo`, the compiler: a class for `isinstance`, and a decorator.
torchmetrics 1.9 imports `scipy.signal` to add a name to it for another library. Together they take 2.4 s of processor
time and 150 MB of memory. Stand-ins take their places while Lightning is imported. They are removed afterwards, so that
each further import of such a module loads it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stand-in for a module. A name that it lacks is read from the module itself, which is then imported."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        super().__init__(name)
        spec = find_spec(name)  # this imports the parent package only
        self.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - attributes of any type
        if name.startswith("__"):  # `inspect` looks for them in all modules
            raise AttributeError(name)
        self.withdraw()
        return getattr(import_module(self.__name__), name)

    def withdraw(self) -> None:
        """Remove the stand-in, so that the next import loads the module."""
        parent, _, child = self.__name__.rpartition(".")
        for names, key in ((sys.modules, self.__name__), (vars(sys.modules[parent]), child)):
            if names.get(key) is self:
                del names[key]


def _compiler() -> ModuleType | None:
    """Return `torch._dynamo`; None if nothing has imported it, so that nothing is compiled."""
    module = sys.modules.get("torch._dynamo")
    return None if isinstance(module, _Deferred) else module


class _CompiledModule(type):
    """Metaclass of a stand-in for `torch._dynamo.OptimizedModule`, for `isinstance`."""

    def __instancecheck__(cls, value: object) -> bool:
        """Return whether `value` is a compiled module."""
        return isinstance(value, getattr(_compiler(), "OptimizedModule", ()))


class _OptimizedModule(metaclass=_CompiledModule):
    """Stand-in for the class of compiled modules."""


def _disable(function: Callable[..., Any], recursive: bool = True, **options: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Stand in for `torch._dynamo.disable`, which excludes a function from compilation."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        compiler = _compiler()
        excluded = function if compiler is None else compiler.disable(function, recursive, **options)
        return excluded(*args, **kwargs)

    return call


STAND_INS: dict[str, dict[str, Any]] = {  # the names that are read while Lightning is imported, by module
    "torch._dynamo": {"OptimizedModule": _OptimizedModule, "disable": _disable},
    "scipy.signal": {"hamming": None},
}


@contextmanager
def deferred() -> Iterator[None]:
    """Keep the modules of `STAND_INS` from being imported in the block, unless they were imported before."""
    stand_ins = {name: _Deferred(name, names) for name, names in STAND_INS.items() if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in.withdraw()
