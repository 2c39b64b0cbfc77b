"""Import Lightning without three large packages that its import loads, although training does not use them.

- `torch._dynamo`, torch's compiler: Lightning 2.6.6 reads a class from it, for `isinstance`, and a decorator.
- `scipy.signal`: torchmetrics 1.9 adds a name to it for another library.
- `matplotlib`: torchmetrics 1.9 can plot metrics.

Together they take 2.8 s of processor time and 160 MB of memory. Stand-ins take their places while Lightning is
imported. They are removed afterwards, so that each further import of such a module loads it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any


class _ModuleStandIn(ModuleType):
    """A stand-in for the module `module_name` with the names in `attribute_by_name` only.

    Any other name makes it import the module itself.

    Other modules may keep a stand-in. Once the stand-in is removed, it reads all names from the module itself.
    """

    def __init__(self, module_name: str, attribute_by_name: dict[str, Any]) -> None:
        super().__init__(module_name)
        self._stand_in_names = dict(attribute_by_name)
        module_spec = find_spec(module_name)  # imports the parent package only
        self.__path__ = list(module_spec.submodule_search_locations or ()) if module_spec else []
        sys.modules[module_name] = self
        package_name, _, attribute_name = module_name.rpartition(".")
        if isinstance(parent_module := sys.modules.get(package_name), _ModuleStandIn):
            parent_module._stand_in_names[attribute_name] = self

    def __getattr__(self, attribute_name: str) -> Any:  # noqa: ANN401 - attributes of any type
        if attribute_name.startswith("__"):  # `inspect` looks for them in all modules
            raise AttributeError(attribute_name)
        if attribute_name in self._stand_in_names:
            return self._stand_in_names[attribute_name]
        return getattr(self.load_module(), attribute_name)

    def load_module(self) -> ModuleType:
        """Remove the stand-ins of this module's top-level package, then import and return the module itself."""
        package_name = self.__name__.partition(".")[0]
        for loaded_module in list(sys.modules.values()):
            if isinstance(loaded_module, _ModuleStandIn) and loaded_module.__name__.partition(".")[0] == package_name:
                loaded_module.remove_stand_in()
        return import_module(self.__name__)

    def remove_stand_in(self) -> None:
        """Remove the stand-in, so that the next import loads the module."""
        self._stand_in_names = {}
        package_name, _, module_name = self.__name__.rpartition(".")
        package_namespace = vars(sys.modules.get(package_name, self))
        for module_namespace, entry_name in ((sys.modules, self.__name__), (package_namespace, module_name)):
            if module_namespace.get(entry_name) is self:
                del module_namespace[entry_name]


class _SubmoduleFinder:
    """A finder of submodules of stand-ins, for example `torch._dynamo.utils`, which torchvision imports.

    It imports the package itself in place of the stand-in, and then lets the other finders find the submodule.
    """

    def find_spec(self, module_name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec of the submodule `module_name` if the import of its package has loaded it, else None.

        `path` and `target` are those of Python's finders, and have no effect.
        """
        parent_module = sys.modules.get(module_name.rpartition(".")[0])
        if not isinstance(parent_module, _ModuleStandIn):
            return None
        parent_module.load_module()  # it often imports its submodules
        loaded_module = sys.modules.get(module_name)
        return None if loaded_module is None else ModuleSpec(module_name, _LoadedModuleLoader(loaded_module))


class _LoadedModuleLoader(Loader):
    """A loader of a module that is loaded already, and is not run again.

    The import system would prefer the module's own spec, which runs it again; so the module has none meanwhile.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module, self.module_spec = module, module.__spec__
        module.__spec__ = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the loaded module instead of creating one from `spec`."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Give `module` the spec again that it had before; its code has run already."""
        module.__spec__ = self.module_spec


def _find_compiler() -> ModuleType | None:
    """Return `torch._dynamo`; None if nothing has imported it, so that nothing is compiled."""
    compiler_module = sys.modules.get("torch._dynamo")
    return None if isinstance(compiler_module, _ModuleStandIn) else compiler_module


class _CompiledModuleMeta(type):
    """A metaclass of a stand-in for `torch._dynamo.OptimizedModule`, for `isinstance`."""

    def __instancecheck__(cls, tested_object: object) -> bool:
        """Return whether `tested_object` is a compiled module."""
        return isinstance(tested_object, getattr(_find_compiler(), "OptimizedModule", ()))


class _OptimizedModule(metaclass=_CompiledModuleMeta):
    """A stand-in for torch's class of compiled modules."""


def _disable_compilation(function: Callable[..., Any], recursive: bool = True, **options: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return `function`, excluded from compilation; a stand-in for `torch._dynamo.disable`, whose arguments it has."""

    @wraps(function)
    def call_uncompiled(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        compiler = _find_compiler()
        uncompiled_function = function if compiler is None else compiler.disable(function, recursive, **options)
        return uncompiled_function(*args, **kwargs)

    return call_uncompiled


@contextmanager
def _use_matplotlib_style(*style_options: Any) -> Iterator[None]:  # noqa: ANN401
    """Use a style of Matplotlib in the `with` block; a stand-in for `matplotlib.pyplot.style.context`.

    `style_options` are its arguments. Functions that plot are decorated with it.
    """
    with import_module("matplotlib.style").context(*style_options):
        yield


STAND_IN_NAMES: dict[str, dict[str, Any]] = {  # the names that are read while Lightning is imported, by module
    "torch._dynamo": {"OptimizedModule": _OptimizedModule, "disable": _disable_compilation},
    "scipy.signal": {"hamming": None},
    "matplotlib": {"colors": SimpleNamespace(Colormap=object)},
    "matplotlib.axes": {"Axes": object},
    "matplotlib.pyplot": {"Figure": object, "style": SimpleNamespace(context=_use_matplotlib_style)},
}


@contextmanager
def defer_slow_imports() -> Iterator[None]:
    """Prevent imports of the modules in `STAND_IN_NAMES` in the `with` block, unless they were imported before."""
    stand_ins = [_ModuleStandIn(k, n) for k, n in STAND_IN_NAMES.items() if k not in sys.modules]
    submodule_finder = _SubmoduleFinder()
    sys.meta_path.insert(0, submodule_finder)  # after the stand-ins, which look for their modules
    try:
        yield
    finally:
        sys.meta_path.remove(submodule_finder)
        for stand_in in stand_ins:
            stand_in.remove_stand_in()
