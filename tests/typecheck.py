"""What jaxtyping's import hook checks under pytest: every argument and result that is annotated with a shape.

A general checker would also look at protocols and at names that only mypy imports; mypy has checked those already.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from jaxtyping import AbstractArray


def _shaped(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, AbstractArray)


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raise TypeError where an array has not the shape or dtype that its annotation names."""
    shaped = {name: hint for name, hint in function.__annotations__.items() if _shaped(hint)}
    if not shaped:
        return function
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        for name, hint in shaped.items():
            if name in bound and not isinstance(bound[name], hint):
                raise TypeError(f"{function.__qualname__}: {name} is {bound[name]!r:.200}, not {hint}")
        result = function(*args, **kwargs)
        if "return" in shaped and not isinstance(result, shaped["return"]):
            raise TypeError(f"{function.__qualname__}: returns {result!r:.200}, not {shaped['return']}")
        return result

    return checked
