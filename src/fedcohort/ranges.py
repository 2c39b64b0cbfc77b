"""Range checks of hyperparameters. The interval in the call is the interval in the yaml comment.

Every check raises `OptionError("<option> must be <allowed>, got <value>")`.
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fedcohort.errors import OptionError


def refuse(option: str, allowed: str, value: object) -> OptionError:
    """The error for `option`; `allowed` completes the words "must be"."""
    return OptionError(f"{option} must be {allowed}, got {value!r}")


def closest(value: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of `known` that `value` may be a misspelling of; None where none is similar.

    cutoff: least similarity, in [0, 1] (`difflib`).
    """
    return next(iter(difflib.get_close_matches(str(value), sorted(known), 1, cutoff)), None)


def not_one_of(option: str, value: object, known: Sequence[str]) -> OptionError:
    """Return the error for a choice that there isn't, which begins with the one that was meant."""
    near = None if value == "null" else closest(value, known)
    guess = f"did you mean {option}={near}? " if near else ""
    return OptionError(f"{guess}{refuse(option, 'one of ' + ', '.join(known), value)}")


def bounds(interval: str) -> tuple[float, float]:
    """Return the two ends of an interval, written like "(0, 1]"."""
    low, high = (float(end) for end in interval[1:-1].split(","))
    return low, high


def _inside(value: float, interval: str) -> bool:
    low, high = bounds(interval)
    if abs(value) > sys.float_info.max:  # infinite, or an integer that no float can hold
        return False
    above = value >= low if interval[0] == "[" else value > low
    below = value <= high if interval[-1] == "]" else value < high
    return above and below


def number(option: str, value: object, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is a finite number inside `interval`, written like "(0, 1]" or "[0, inf)"."""
    allowed = f"a number in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not _inside(value, interval):
        raise refuse(option, allowed, value)


def integer(option: str, value: object, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is an integer inside `interval`."""
    allowed = f"an integer in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not _inside(value, interval):
        raise refuse(option, allowed, value)


def parse_number(option: str, text: str, interval: str) -> float:
    """Return the number in `text`, which was typed. Raises `OptionError` for one outside of `interval`."""
    try:
        value = float(text)
    except ValueError:
        raise refuse(option, f"a number in {interval}", text) from None
    number(option, value, interval)
    return value


def choice(option: str, value: object, *words: str) -> None:
    """Check that `value` is one of `words`."""
    if not isinstance(value, str) or value not in words:
        near = closest(value, words, cutoff=0.7)  # bfloat16 is no misspelling of float32
        error = refuse(option, "one of " + ", ".join(words), value)
        raise OptionError(f"{error}; did you mean {near}?") if near else error


def distinct(columns: Mapping[str, str | None]) -> None:
    """Check that no two options name the same column; options whose value is None name none."""
    options: dict[str, str] = {}
    for option, column in columns.items():
        if column is not None and column in options:
            raise OptionError(f"{option} and {options[column]} must be two columns, got {column!r} for both")
        if column is not None:
            options[column] = option


def flag(option: str, value: object) -> None:
    """Check that `value` is true or false."""
    if not isinstance(value, bool):
        raise refuse(option, "true or false", value)


def text(option: str, value: object, *, optional: bool = False) -> None:
    """Check that `value` is a text that is not empty."""
    if value is None and optional:
        return
    if not isinstance(value, str) or not value.strip():
        raise refuse(option, "a text that is not empty" + (" or null" if optional else ""), value)


def is_identifier(value: object) -> bool:
    """Return whether `value` can be the name of a component, a setting or a study, which files are called after."""
    return isinstance(value, str) and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", value) is not None


def identifier(option: str, value: object) -> None:
    """Check that `value` is a name of ASCII letters, digits and underscores: files and folders are called after it."""
    if not is_identifier(value):
        fitting = re.sub("[^A-Za-z0-9]+", "_", str(value)).strip("_") or "name"
        fitting = f"x{fitting}" if fitting[0].isdigit() else fitting
        allowed = f"letters, digits and underscores without a digit in front, such as {fitting}"
        raise refuse(option, allowed, value)


def texts(option: str, value: object) -> None:
    """Check that `value` is a list of texts; it may be empty."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise refuse(option, "a list of texts, as [id,age]", value)


def integers(option: str, value: object, interval: str) -> None:
    """Check that `value` is a list of integers inside `interval`; it may be empty."""
    _each(integer, option, value, interval, f"a list of integers in {interval}")


def numbers(option: str, value: object, interval: str) -> None:
    """Check that `value` is a list of numbers inside `interval`; it may be empty."""
    _each(number, option, value, interval, f"a list of numbers in {interval}")


def words(option: str, value: object, *known: str) -> None:
    """Check that `value` is a list of different words of `known`, one at least."""
    allowed = "a list of one or more of " + ", ".join(known) + ", none twice"
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise refuse(option, allowed, value)
    if not all(isinstance(word, str) and word in known for word in value) or len(set(value)) < len(value):
        raise refuse(option, allowed, value)


def _each(check: Callable[[str, Any, str], None], option: str, value: object, interval: str, allowed: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise refuse(option, allowed, value)
    for item in value:
        try:
            check(option, item, interval)
        except OptionError as error:
            raise refuse(option, allowed, value) from error
