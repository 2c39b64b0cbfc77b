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


class Shapes:
    """Checks values against their annotations, in which a letter stands for one length.

    Args:
        name: of the function or class, for the message.
        annotations: annotation by name of the value.
    """

    def __init__(self, name: str, annotations: Mapping[str, Any]) -> None:
        self.name, self.annotations = name, annotations
        self.accepted: set[tuple[Any, ...]] = set()

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise TypeError where a value does not have the shape or dtype of its annotation."""
        kinds = [
            (type(value), getattr(value, "dtype", None), getattr(value, "shape", None)) for value in values.values()
        ]
        key = (*values, *kinds)
        if key in self.accepted:
            return
        with JAXTYPED("context"):
            for name, value in values.items():
                if not isinstance(value, self.annotations[name]):
                    raise TypeError(f"{self.name}: {name} is {value!r:.200}, not {self.annotations[name]}")
        self.accepted.add(key)


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also checks the shapes of its arguments and of its result."""
    annotations = _list_shapes(function.__annotations__)
    if not annotations:
        return function
    shapes = Shapes(function.__qualname__, annotations)
    parameters = list(inspect.signature(function).parameters)  # no function of fedcohort takes *args
    places = [(parameters.index(name), name) for name in annotations if name != "return"]

    @functools.wraps(function)
    def check_shapes(*args: Any, **kwargs: Any) -> Any:
        values = {name: args[place] for place, name in places if place < len(args)}
        if kwargs:
            values |= {name: kwargs[name] for name in annotations if name in kwargs}
        shapes.check(values)
        result = function(*args, **kwargs)
        if "return" in annotations:
            shapes.check({**values, "return": result})
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
