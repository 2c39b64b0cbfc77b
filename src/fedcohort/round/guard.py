"""A guard around the components of a run: they get read-only arrays, and their results are checked.

An exception in a component is reported with the component's name, and the file and line of its code.
"""

import functools
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from fedcohort.component import NEW_NAMES_OF_DECLARATIONS
from fedcohort.contracts import contract_error, describe_exception
from fedcohort.errors import ComponentError, FedcohortError, UndeclaredSignal
from fedcohort.round.contracts import CHECKS, Check
from fedcohort.types import read_only

P = TypeVar("P")
NAME = "name_in_messages"  # the attribute that `guard` gives a part
Hint = Any  # a type, or what stands for several


def name_of(part: object, option: str) -> str:
    """Return the option as typed with the class behind it, as in "selector=mine (my_code.Mine)"."""
    return f"{option} ({type(part).__module__}.{type(part).__qualname__})"


def guard(part: P, group: str, option: str, contract: type) -> P:
    """Return the part with each method of `CHECKS` wrapped by its check.

    Args:
        part: the component.
        group: its config group.
        option: the option as typed, as in "selector=mine".
        contract: class in the group's `base` module, whose attributes the component must have.
    """
    component_name = name_of(part, option)
    _check_attributes(part, contract, component_name)
    object.__setattr__(part, NAME, component_name)
    for name, check in CHECKS.get(group, {}).items():
        object.__setattr__(part, name, _guarded(part, getattr(part, name), check, f"{component_name}: {name}"))
    return part


def _guarded(part: object, method: Callable[..., Any], check: Check, where: str) -> Callable[..., Any]:
    has_tensor_arguments = where.endswith((": direction", ": step", ": transmit", ": change"))

    @functools.wraps(method)
    def call(*args: object) -> object:
        argument_tensors = list(_tensors(args)) if has_tensor_arguments else []
        versions = [tensor._version for tensor in argument_tensors]
        with name_component_in_errors(where, type(part).__module__):
            result = check(part, method(*map(read_only, args)), *args)
            if versions != [tensor._version for tensor in argument_tensors]:
                raise ComponentError("it changes an argument tensor in place, which other components read, too")
        return result

    return call


@contextmanager
def name_component_in_errors(where: str, module: str) -> Iterator[None]:
    """Put the name of a component and of its method in front of its errors.

    Args:
        where: name of the component and of its method.
        module: module of the component's class.
    """
    try:
        yield
    except ComponentError as error:
        raise ComponentError(f"{where}: {error}") from error
    except UndeclaredSignal as error:
        raise UndeclaredSignal(f"{where}: {error}") from error
    except (FedcohortError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and "alloc" in str(error):  # torch raises no MemoryError
            raise
        raise ComponentError(f"{where} raised {describe_exception(error, module)}") from error


def _tensors(args: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among the arguments, and those of an `agg.base.Arrived`."""
    for item in args:
        if hasattr(item, "_version"):
            yield item
        elif hasattr(item, "totals"):
            yield from _tensors((item.mean, item.updates, item.buffers, *item.totals.values()))


@contextmanager
def name_part_in_errors(part: object) -> Iterator[None]:
    """Put the name of a component in front of errors in the block, which its choices or declarations cause."""
    try:
        yield
    except FedcohortError as error:
        raise type(error)(f"{getattr(part, NAME, type(part).__name__)}: {error}") from error


def find_faulty_component(error: BaseException, owners: Mapping[str, str]) -> ComponentError | None:
    """Return an error that names the component in whose code `error` was raised; None if it was in no component.

    owners: name of the component by module.
    """
    if isinstance(error, FedcohortError) or not isinstance(error, Exception):
        return None
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = next((name for name in reversed(modules) if name in owners), None)
    return None if module is None else ComponentError(f"{owners[module]} raised {describe_exception(error, module)}")


def owners_of(code: Mapping[str, Iterable[object]], signals: Iterable[str]) -> dict[str, str]:
    """Return the option that each module of the components' code belongs to, by the module's name.

    Args:
        code: objects of each option, by the option as typed: a component, its hooks, the modules of a network.
        signals: names of all signals that the run reads.
    """
    options: dict[str, list[str]] = defaultdict(list)
    for option, objects in code.items():
        for module in sorted({type(item).__module__ for item in objects}):
            if not module.startswith("torch."):
                options[module].append(option)
    for word in signals:
        options[word if "." in word else f"fedcohort.signal.{word}"].append(f"the signal {word}")
    return {module: " or ".join(names) for module, names in options.items()}


def _check_attributes(part: object, contract: type, component_name: str) -> None:
    """Check the type of each attribute and property that the contract declares. Raises `ComponentError`."""
    for name, hint in _declared(contract).items():
        with name_component_in_errors(f"{component_name}: {name}", type(part).__module__):
            value = getattr(part, name)
        kind: Hint = hint if isinstance(hint, UnionType) else get_origin(hint) or hint
        accepted = kind | int if float in (get_args(kind) or (kind,)) else kind  # 5 is a valid float, too
        if isinstance(kind, type | UnionType) and not isinstance(value, accepted):
            raise ComponentError(
                f"{component_name}: {contract_error(name, str(getattr(kind, '__name__', kind)), value)}"
            )
    for old, new in NEW_NAMES_OF_DECLARATIONS.items():
        if hasattr(part, old):
            raise ComponentError(f"{component_name}: {old} is called {new} now: rename it in {type(part).__qualname__}")
    for hook in getattr(part, "hooks", ()):
        for name in ("begin", "downloads", "uploads", "remembers"):
            if not hasattr(hook, name):
                raise ComponentError(
                    f"{component_name}: {contract_error('each of hooks', f'an object with {name}', hook)}"
                )
    for name in dir(contract):
        if isinstance(getattr(contract, name), FunctionType) and not callable(getattr(part, name)):
            raise ComponentError(f"{component_name}: {contract_error(name, 'a method', getattr(part, name))}")


@functools.cache
def _declared(contract: type) -> dict[str, Hint]:
    """Return the types of the attributes and properties of a contract, by name; quoted types are excluded."""
    types: dict[str, Hint] = {}
    for base in reversed(contract.__mro__):
        annotations = vars(base).get("__annotations__", {})
        types |= {
            name: get_args(hint)[0] if get_origin(hint) is ClassVar else hint for name, hint in annotations.items()
        }
        for name, item in vars(base).items():
            if isinstance(item, property):
                types[name] = getattr(item.fget, "__annotations__", {}).get("return")
    return {name: hint for name, hint in types.items() if not name.startswith("_") and hint is not None}
