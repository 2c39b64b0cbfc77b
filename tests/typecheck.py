"""What jaxtyping's import hook checks under pytest: every argument and result that is annotated with a shape.

A general checker would also look at protocols and at names that only mypy imports; mypy has checked those already. What
is called very often is looked at every tenth time then: all of it would be a quarter of the suite.
"""

import functools
import inspect
import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jaxtyping
from jaxtyping import AbstractArray

OFTEN, EVERY = 1000, 10  # calls of one function that are all looked at; of the later ones each tenth
JAXTYPED = getattr(jaxtyping.jaxtyped, "original", jaxtyping.jaxtyped)  # where tests are forgotten and read anew


def _shaped(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, AbstractArray)


def where_shapes_are(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """`jaxtyping.jaxtyped` for what has a shape to check: it would bind the arguments of every call of anything."""

    def decorator(*, typechecker: Any) -> Callable[[Any], Any]:
        def decorate(item: Any) -> Any:
            if not inspect.isclass(item):
                return check(item, jaxtyped)
            some = any(map(_shaped, inspect.get_annotations(item).values()))
            return jaxtyped(item, typechecker=typechecker) if some else item

        return decorate

    vars(decorator)["original"] = jaxtyped
    return decorator


def check(function: Callable[..., Any], jaxtyped: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Raise TypeError where an array has not the shape or dtype that its annotation names.

    jaxtyped: makes the context in which a letter stands for one length, None where the caller has made it.
    """
    shaped = {name: hint for name, hint in function.__annotations__.items() if _shaped(hint)}
    if not shaped:
        return function
    result_hint = shaped.pop("return", None)
    names = list(inspect.signature(function).parameters)  # none of ours takes *args
    hints = [(names.index(name), name, hint) for name, hint in shaped.items()]
    calls = itertools.count()

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        number = next(calls)
        if number >= OFTEN and number % EVERY:
            return function(*args, **kwargs)
        with jaxtyped("context") if jaxtyped else nullcontext():
            for place, name, hint in hints:
                if place < len(args) or name in kwargs:
                    value = args[place] if place < len(args) else kwargs[name]
                    if not isinstance(value, hint):
                        raise TypeError(f"{function.__qualname__}: {name} is {value!r:.200}, not {hint}")
            result = function(*args, **kwargs)
            if result_hint is not None and not isinstance(result, result_hint):
                raise TypeError(f"{function.__qualname__}: returns {result!r:.200}, not {result_hint}")
            return result

    return checked
