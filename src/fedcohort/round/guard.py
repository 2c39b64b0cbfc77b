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
from fedcohort.round.contracts import CHECKS_BY_GROUP, ResultCheck
from fedcohort.types import read_only

P = TypeVar("P")
NAME_IN_MESSAGES_ATTRIBUTE = "name_in_messages"  # the attribute that `add_result_checks` gives a component
TypeHint = Any  # a type, or what stands for several


def format_option_name(component: object, option_text: str) -> str:
    """Return `option_text` as typed with the class of `component`, as in "selector=mine (my_code.Mine)"."""
    return f"{option_text} ({type(component).__module__}.{type(component).__qualname__})"


def add_result_checks(component: P, config_group: str, option_text: str, contract_class: type) -> P:
    """Return the component with its methods in `CHECKS_BY_GROUP` wrapped by the check of their results.

    Args:
        component: the component.
        config_group: config group of the component.
        option_text: the option as typed, as in "selector=mine".
        contract_class: class in the group's `base` module, whose attributes the component must have.

    Raises:
        ComponentError: the component lacks an attribute, or it has a wrong type.
    """
    component_name = format_option_name(component, option_text)
    _check_component_attributes(component, contract_class, component_name)
    object.__setattr__(component, NAME_IN_MESSAGES_ATTRIBUTE, component_name)
    for k, result_check in CHECKS_BY_GROUP.get(config_group, {}).items():
        guarded_method = _check_method_results(component, getattr(component, k), result_check, f"{component_name}: {k}")
        object.__setattr__(component, k, guarded_method)
    return component


def _check_method_results(
    component: object, component_method: Callable[..., Any], result_check: ResultCheck, method_name: str
) -> Callable[..., Any]:
    has_tensor_arguments = method_name.endswith((": direction", ": step", ": transmit", ": change"))

    @functools.wraps(component_method)
    def call_checked_method(*args: object) -> object:
        argument_tensors = list(_yield_argument_tensors(args)) if has_tensor_arguments else []
        tensor_versions = [tensor._version for tensor in argument_tensors]
        with prefix_errors_with_method(method_name, type(component).__module__):
            checked_result = result_check(component, component_method(*map(read_only, args)), *args)
            if tensor_versions != [tensor._version for tensor in argument_tensors]:
                raise ComponentError(
                    "it changes an argument tensor in place, which other components read, too: change a copy"
                )
        return checked_result

    return call_checked_method


@contextmanager
def prefix_errors_with_method(method_name: str, module_name: str) -> Iterator[None]:
    """Put the name of a component and of its method in front of errors in a `with` block.

    Args:
        method_name: name of the component and of its method.
        module_name: module of the component's class.

    Raises:
        ComponentError: the block raised an error that is not one of fedcohort, or a `ComponentError`.
    """
    try:
        yield
    except ComponentError as error:
        raise ComponentError(f"{method_name}: {error}") from error
    except UndeclaredSignal as error:
        raise UndeclaredSignal(f"{method_name}: {error}") from error
    except (FedcohortError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and "alloc" in str(error):  # torch raises no MemoryError
            raise
        raise ComponentError(f"{method_name} raised {describe_exception(error, module_name)}") from error


def _yield_argument_tensors(args: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among the arguments `args`, and those of an `agg.base.Arrived`."""
    for argument in args:
        if hasattr(argument, "_version"):
            yield argument
        elif hasattr(argument, "totals"):
            yield from _yield_argument_tensors(
                (argument.mean, argument.updates, argument.buffers, *argument.totals.values())
            )


@contextmanager
def prefix_errors_with_component(component: object) -> Iterator[None]:
    """Put the name of `component` in front of each fedcohort error that is raised in a `with` block."""
    try:
        yield
    except FedcohortError as error:
        raise type(error)(
            f"{getattr(component, NAME_IN_MESSAGES_ATTRIBUTE, type(component).__name__)}: {error}"
        ) from error


def find_faulty_component(error: BaseException, component_by_module: Mapping[str, str]) -> ComponentError | None:
    """Return an error that names the component in whose code `error` was raised; None if it was in no component.

    Args:
        error: the error.
        component_by_module: name of a component, by the module of its code.
    """
    if isinstance(error, FedcohortError) or not isinstance(error, Exception):
        return None
    module_names = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
    faulty_module = next((k for k in reversed(module_names) if k in component_by_module), None)
    return (
        None
        if faulty_module is None
        else ComponentError(f"{component_by_module[faulty_module]} raised {describe_exception(error, faulty_module)}")
    )


def map_modules_to_options(objects_by_option: Mapping[str, Iterable[object]], signals: Iterable[str]) -> dict[str, str]:
    """Return the option that each module of the components' code belongs to, by the module's name.

    Args:
        objects_by_option: objects of each option, by the option as typed: a component, its hooks, the modules of a
            network.
        signals: names of all signals that the run reads.
    """
    options_by_module: dict[str, list[str]] = defaultdict(list)
    for option_text, component_objects in objects_by_option.items():
        for module_name in sorted({type(component_object).__module__ for component_object in component_objects}):
            if not module_name.startswith("torch."):
                options_by_module[module_name].append(option_text)
    for signal in signals:
        options_by_module[signal if "." in signal else f"fedcohort.signal.{signal}"].append(f"the signal {signal}")
    return {module_name: " or ".join(option_texts) for module_name, option_texts in options_by_module.items()}


def _check_component_attributes(component: object, contract_class: type, component_name: str) -> None:
    """Raise `ComponentError` if `component` lacks an attribute of the class `contract_class`, or it has a wrong type.

    `component_name` is the name in the message.
    """
    for attribute, type_hint in _list_declared_types(contract_class).items():
        with prefix_errors_with_method(f"{component_name}: {attribute}", type(component).__module__):
            attribute_value = getattr(component, attribute)
        declared_type: TypeHint = type_hint if isinstance(type_hint, UnionType) else get_origin(type_hint) or type_hint
        accepted_type = (
            declared_type | int if float in (get_args(declared_type) or (declared_type,)) else declared_type
        )  # 5 is a valid float, too
        if isinstance(declared_type, type | UnionType) and not isinstance(attribute_value, accepted_type):
            raise ComponentError(
                f"{component_name}: "
                f"{contract_error(attribute, str(getattr(declared_type, '__name__', declared_type)), attribute_value)}"
            )
    for old_name, new_name in NEW_NAMES_OF_DECLARATIONS.items():
        if hasattr(component, old_name):
            raise ComponentError(
                f"{component_name}: {old_name} is called {new_name} now: rename it in {type(component).__qualname__}"
            )
    for hook in getattr(component, "hooks", ()):
        for attribute in ("begin", "downloads", "uploads", "remembers"):
            if not hasattr(hook, attribute):
                raise ComponentError(
                    f"{component_name}: {contract_error('each of hooks', f'an object with {attribute}', hook)}"
                )
    for k in dir(contract_class):
        if isinstance(getattr(contract_class, k), FunctionType) and not callable(getattr(component, k)):
            raise ComponentError(f"{component_name}: {contract_error(k, 'a method', getattr(component, k))}")


@functools.cache
def _list_declared_types(contract_class: type) -> dict[str, TypeHint]:
    """Return the types of the attributes and properties of `contract_class`, by name, without quoted types."""
    type_by_name: dict[str, TypeHint] = {}
    for base_class in reversed(contract_class.__mro__):
        type_annotations = vars(base_class).get("__annotations__", {})
        type_by_name |= {k: get_args(h)[0] if get_origin(h) is ClassVar else h for k, h in type_annotations.items()}
        for k, class_attribute in vars(base_class).items():
            if isinstance(class_attribute, property):
                type_by_name[k] = getattr(class_attribute.fget, "__annotations__", {}).get("return")
    return {k: h for k, h in type_by_name.items() if not k.startswith("_") and h is not None}
