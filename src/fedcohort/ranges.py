"""Range checks of options. The interval in the call is the interval in the yaml comment.

Each check raises `OptionError("<option> must be <allowed>, got <value>")`.
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fedcohort.errors import OptionError


def refuse(option: str, allowed: str, value: object) -> OptionError:
    """Return the error for the value of an option; allowed: completes "must be"."""
    return OptionError(f"{option} must be {allowed}, got {value!r}")


def find_closest(value: object, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name of which `value` is probably a misspelling; None if no name is similar.

    Args:
        value: the text that was typed.
        names: the valid names.
        cutoff: least similarity, in [0, 1] (`difflib`).
    """
    by_lower_case = {name.casefold(): name for name in sorted(names)}  # FLASH is flash
    similar_names = difflib.get_close_matches(str(value).casefold(), list(by_lower_case), 1, cutoff)
    return by_lower_case[similar_names[0]] if similar_names else None


def did_you_mean(value: object, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a message, "; did you mean NAME?", or an empty text if no name is similar (`find_closest`)."""
    similar_name = find_closest(value, names, cutoff)
    return f"; did you mean {similar_name}?" if similar_name else ""


def unknown_choice_error(option: str, value: object, choices: Sequence[str]) -> OptionError:
    """Return the error for a choice that does not exist; the message begins with the most similar existing choice."""
    similar_choice = None if value == "null" else find_closest(value, choices)
    hint = f"did you mean {option}={similar_choice}? " if similar_choice else ""
    return OptionError(f"{hint}{refuse(option, 'one of ' + ', '.join(choices), value)}")


def bounds(interval: str) -> tuple[float, float]:
    """Return the two ends of an interval, written like "(0, 1]"."""
    low, high = (float(end) for end in interval[1:-1].split(","))
    return low, high


def _is_inside(value: float, interval: str) -> bool:
    low, high = bounds(interval)
    if abs(value) > sys.float_info.max:  # infinite, or an integer above the range of floats
        return False
    is_above_low = value >= low if interval[0] == "[" else value > low
    below = value <= high if interval[-1] == "]" else value < high
    return is_above_low and below


def number(option: str, value: object, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is a finite number inside `interval`, written like "(0, 1]" or "[0, inf)"."""
    allowed = f"a number in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_inside(value, interval):
        raise refuse(option, allowed, value)


def integer(option: str, value: object, interval: str, *, optional: bool = False) -> None:
    """Check that `value` is an integer inside `interval`."""
    allowed = f"an integer in {interval}" + (" or null" if optional else "")
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not _is_inside(value, interval):
        raise refuse(option, allowed, value)


def parse_number(option: str, text: str, interval: str) -> float:
    """Return the number in `text`, which was typed. Raises `OptionError` for one outside of `interval`."""
    try:
        value = float(text)
    except ValueError:
        raise refuse(option, f"a number in {interval}", text) from None
    number(option, value, interval)
    return value


def choice(option: str, value: object, *choices: str) -> None:
    """Check that `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value, choices, cutoff=0.7)  # above the similarity of bfloat16 and float32
        raise OptionError(f"{refuse(option, 'one of ' + ', '.join(choices), value)}{hint}")


def distinct(columns: Mapping[str, str | None]) -> None:
    """Check that no two options name the same column; an option that is None names no column."""
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
    """Check that `value` is a non-empty text."""
    if value is None and optional:
        return
    if not isinstance(value, str) or not value.strip():
        raise refuse(option, "a text that is not empty" + (" or null" if optional else ""), value)


def is_identifier(value: object) -> bool:
    """Return whether `value` can be the name of a component, a setting or a study, and of its file."""
    return isinstance(value, str) and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", value) is not None


def identifier(option: str, value: object) -> None:
    """Check that `value` consists of ASCII letters, digits and underscores, as names of files and folders do."""
    if not is_identifier(value):
        valid_name = re.sub("[^A-Za-z0-9]+", "_", str(value)).strip("_") or "name"
        valid_name = f"x{valid_name}" if valid_name[0].isdigit() else valid_name
        allowed = f"letters, digits and underscores without a digit in front, such as {valid_name}"
        raise refuse(option, allowed, value)


def texts(option: str, value: object) -> None:
    """Check that `value` is a list of texts; it may be empty."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise refuse(option, "a list of texts, as [id,age]", value)


def integers(option: str, value: object, interval: str) -> None:
    """Check that `value` is a list of integers inside `interval`; it may be empty."""
    _check_list(integer, option, value, interval, f"a list of integers in {interval}")


def numbers(option: str, value: object, interval: str) -> None:
    """Check that `value` is a list of numbers inside `interval`; it may be empty."""
    _check_list(number, option, value, interval, f"a list of numbers in {interval}")


def words(option: str, value: object, *allowed: str) -> None:
    """Check that `value` is a list of one or more of `allowed`, without repetition."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if not items or not all(item in allowed for item in items) or len(set(items)) < len(items):
        raise refuse(option, f"a list of one or more of {', '.join(allowed)}, none twice", value)


def _check_list(
    check: Callable[[str, Any, str], None], option: str, value: object, interval: str, allowed: str
) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise refuse(option, allowed, value)
    for item in value:
        try:
            check(option, item, interval)
        except OptionError as error:
            raise refuse(option, allowed, value) from error
