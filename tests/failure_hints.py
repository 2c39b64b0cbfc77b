"""Failures of a law begin with what the author of a method can do."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")


def failure_hint(sentence: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Return a decorator that puts `sentence` before the message of a test's failed assertion."""

    def decorate(test: Callable[P, None]) -> Callable[P, None]:
        @wraps(test)
        def explain(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                test(*args, **kwargs)
            except AssertionError as error:
                raise AssertionError(f"{sentence}\n\n{error}").with_traceback(error.__traceback__) from None

        return explain

    return decorate
