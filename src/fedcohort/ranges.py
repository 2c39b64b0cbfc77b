"""Range checks of hyperparameters. The interval in the call is the interval in the yaml comment.

Every check raises `OptionError("<option> must be <allowed>, got <value>")`.
"""

import math
from collections.abc import Sequence
from typing import Any

from fedcohort.errors import OptionError


def refuse(option: str, allowed: str, value: object) -> OptionError:
    """The error for `option`; `allowed` completes the words "must be"."""
    return OptionError(f"{option} must be {allowed}, got {value!r}")


def _inside(value: float, interval: str) -> bool:
    low, high = (float(end) for end in interval[1:-1].split(","))
    above = value >= low if interval[0] == "[" else value > low
    below = value <= high if interval[-1] == "]" else value < high
    return above and below and not math.isinf(value)


def number(option: str, value: Any, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is a finite number inside `interval`, written like "(0, 1]" or "[0, inf)"."""
    allowed = f"a number in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not _inside(float(value), interval):
        raise refuse(option, allowed, value)


def integer(option: str, value: Any, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is an integer inside `interval`."""
    allowed = f"an integer in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not _inside(float(value), interval):
        raise refuse(option, allowed, value)


def choice(option: str, value: Any, *words: str) -> None:
    """Check that `value` is one of `words`."""
    if not isinstance(value, str) or value not in words:
        raise refuse(option, "one of " + ", ".join(words), value)


def flag(option: str, value: Any) -> None:
    """Check that `value` is true or false."""
    if not isinstance(value, bool):
        raise refuse(option, "true or false", value)


def integers(option: str, value: Any, interval: str) -> None:
    """Check that `value` is a list of integers inside `interval`; it may be empty."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise refuse(option, f"a list of integers in {interval}", value)
    for item in value:
        integer(f"each of {option}", item, interval)


def numbers(option: str, value: Any, interval: str) -> None:
    """Check that `value` is a list of numbers inside `interval`; it may be empty."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise refuse(option, f"a list of numbers in {interval}", value)
    for item in value:
        number(f"each of {option}", item, interval)
