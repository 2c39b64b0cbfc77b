"""Check annotated shapes at run time: arguments, results and the fields of dataclasses, in every test.

jaxtyping's import hook decorates each function and class of fedcohort with `jaxtyping.jaxtyped`, which `shape_checks`
replaces. jaxtyping examines each combination of types, dtypes and shapes once for each function, because an annotation
depends on nothing else. mypy has checked all other annotations.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jaxtyping
from jaxtyping import AbstractArray

JAXTYPED = getattr(jaxtyping.jaxtyped, "original", jaxtyping.jaxtyped)  # a second import of this module finds its own


def _list_shapes(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations that name a shape."""
    return {
        name: hint for name, hint in annotations.items() if isinstance(hint, type) and issubclass(hint, AbstractArray)
    }


def _describe(value: Any) -> Any:
    """Return all that an annotation of a shape depends on; of an object that is no array, only the type."""
    try:
        return type(value), value.dtype, value.shape
    except AttributeError:
        return type(value)


def _find_mismatch(annotations: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return the name of a value without the shape or dtype of its annotation, in which a letter is one length."""
    with JAXTYPED("context"):
        return next((name for name, value in values.items() if not isinstance(value, annotations[name])), "")


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also checks the shapes of its arguments and of its result."""
    annotations = _list_shapes(function.__annotations__)
    if not annotations:
        return function
    parameters = list(inspect.signature(function).parameters)  # no function of fedcohort takes *args
    places = [(parameters.index(name), name) for name in annotations if name != "return"]
    has_result = "return" in annotations
    accepted: set[Any] = set()

    def examine(key: Any, values: Mapping[str, Any]) -> None:
        values = {name: value for name, value in values.items() if value is not inspect.Parameter.empty}
        if name := _find_mismatch(annotations, values):
            raise TypeError(f"{function.__qualname__}: {name} is {values[name]!r:.200}, not {annotations[name]}")
        accepted.add(key)

    @functools.wraps(function)
    def check_shapes(*args: Any, **kwargs: Any) -> Any:
        n_args = len(args)
        values = [
            args[place] if place < n_args else kwargs.get(name, inspect.Parameter.empty) for place, name in places
        ]
        key = (*map(_describe, values),)
        if key not in accepted:
            examine(key, dict(zip(annotations, values, strict=False)))
        result = function(*args, **kwargs)
        if has_result:
            result_key = (key, _describe(result))
            if result_key not in accepted:
                examine(result_key, {**dict(zip(annotations, values, strict=False)), "return": result})
        return result

    return check_shapes


def decorate(item: Any) -> Any:
    """Return a function, or a dataclass, that checks the shapes of its arguments; any other class as it is."""
    if not inspect.isclass(item):
        return check(item)
    if "__init__" in vars(item) and "__dataclass_fields__" in vars(item):
        item.__init__ = check(item.__init__)  # type: ignore[method-assign]
    return item


def shape_checks(*, typechecker: Any) -> Callable[[Any], Any]:
    """Replace `jaxtyping.jaxtyped`: return the decorator of each function and class."""
    return decorate


vars(shape_checks)["original"] = JAXTYPED
