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


is_array_type: dict[type, bool] = {}


def _list_shapes(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotations that name a shape."""
    return {
        name: hint for name, hint in annotations.items() if isinstance(hint, type) and issubclass(hint, AbstractArray)
    }


def _describe(value: Any) -> Any:
    """Return all that an annotation of a shape depends on; of an object that is no array, only the type."""
    kind = type(value)
    if kind not in is_array_type:
        is_array_type[kind] = hasattr(value, "dtype") and hasattr(value, "shape")
    return (kind, value.dtype, value.shape) if is_array_type[kind] else kind


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
    accepted: dict[Any, set[Any]] = {}  # by description of the arguments, those of the results

    def examine(values: Mapping[str, Any]) -> None:
        values = {name: value for name, value in values.items() if value is not inspect.Parameter.empty}
        if name := _find_mismatch(annotations, values):
            raise TypeError(f"{function.__qualname__}: {name} is {values[name]!r:.200}, not {annotations[name]}")

    @functools.wraps(function)
    def check_shapes(*args: Any, **kwargs: Any) -> Any:
        n_args, values, descriptions = len(args), [], []
        for place, name in places:
            value = args[place] if place < n_args else kwargs.get(name, inspect.Parameter.empty)
            values.append(value)
            descriptions.append(_describe(value))
        key = (*descriptions,)
        accepted_results = accepted.get(key)
        if accepted_results is None:
            examine(dict(zip(annotations, values, strict=False)))
            accepted_results = accepted[key] = set()
        result = function(*args, **kwargs)
        if has_result and (description := _describe(result)) not in accepted_results:
            examine({**dict(zip(annotations, values, strict=False)), "return": result})
            accepted_results.add(description)
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
