"""Range checks of options. The interval in the call is the interval in the yaml comment.

Each check raises `OptionError("<option> must be <allowed>, got <value>")`.
"""

import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, TypeGuard

from fedcohort.errors import OptionError


def range_error(option: str, allowed_text: str, value: object) -> OptionError:
    """Return the error that `option` must be `allowed_text`, such as "a number in (0, 1]", and got `value`."""
    return OptionError(f"{option} must be {allowed_text}, got {value!r}")


def format_option_value(value: object) -> str:
    """Return `value` in the form in which users type it on the command line, such as null or true."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def find_closest(typed_name: object, valid_names: Iterable[str], min_similarity: float = 0.6) -> str | None:
    """Return the name of which `typed_name` is probably a misspelling; None if no name is similar.

    Args:
        typed_name: the name that the user typed.
        valid_names: the valid names.
        min_similarity: least similarity of both names, in [0, 1] (ratio of `difflib`).
    """
    names_by_lower_case = {name.casefold(): name for name in sorted(valid_names)}  # FLASH is flash
    similar_names = difflib.get_close_matches(str(typed_name).casefold(), list(names_by_lower_case), 1, min_similarity)
    return names_by_lower_case[similar_names[0]] if similar_names else None


def did_you_mean(typed_name: object, valid_names: Iterable[str], min_similarity: float = 0.6) -> str:
    """Return "; did you mean NAME?", or "" if no name is similar; the arguments are as in `find_closest`."""
    similar_name = find_closest(typed_name, valid_names, min_similarity)
    return f"; did you mean {similar_name}?" if similar_name else ""


def join_choices(valid_choices: Sequence[str]) -> str:
    """Return `valid_choices` for the message on an invalid choice, with what to do if there are none."""
    return ", ".join(valid_choices) or "(none is defined: leave the option out)"


def unknown_choice_error(option: str, typed_choice: object, valid_choices: Sequence[str]) -> OptionError:
    """Return the error that `option` has no choice `typed_choice`; the message names the most similar valid choice.

    `valid_choices` are all choices of the option.
    """
    similar_choice = None if typed_choice == "null" else find_closest(typed_choice, valid_choices)
    similar_name_hint = f"did you mean {option}={similar_choice}? " if similar_choice else ""
    return OptionError(
        f"{similar_name_hint}{range_error(option, 'one of ' + join_choices(valid_choices), typed_choice)}"
    )


def interval_bounds(interval: str) -> tuple[float, float]:
    """Return the lower and the upper bound of `interval`, which is written like "(0, 1]"."""
    lower_bound, upper_bound = (float(bound_text) for bound_text in interval[1:-1].split(","))
    return lower_bound, upper_bound


def _is_number(value: object, interval: str, number_types: type | UnionType) -> bool:
    """Return whether `value` is of one of `number_types`, finite as a float, and inside `interval`."""
    number: Any = value
    if not isinstance(value, number_types) or isinstance(value, bool) or abs(number) > sys.float_info.max:
        return False
    lower_bound, upper_bound = interval_bounds(interval)
    is_above_lower_bound = number >= lower_bound if interval[0] == "[" else number > lower_bound
    is_below_upper_bound = number <= upper_bound if interval[-1] == "]" else number < upper_bound
    return bool(is_above_lower_bound and is_below_upper_bound)


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def number(option: str, value: object, interval: str, *, allow_null: bool = False) -> None:
    """Raise `OptionError` for `option` unless `value` is a finite number inside `interval`, such as "(0, 1]".

    None is valid with `allow_null`.
    """
    if not (value is None and allow_null) and not _is_number(value, interval, int | float):
        raise range_error(option, f"a number in {interval}" + (" or null" if allow_null else ""), value)


def integer(option: str, value: object, interval: str, *, allow_null: bool = False) -> None:
    """Raise `OptionError` for `option` unless `value` is an integer inside `interval`, or None with `allow_null`."""
    if not (value is None and allow_null) and not _is_number(value, interval, int):
        raise range_error(option, f"an integer in {interval}" + (" or null" if allow_null else ""), value)


def parse_number(option: str, typed_text: str | None, interval: str) -> float:
    """Return the number in `typed_text`; raise `OptionError` for `option` if it is none, or outside `interval`."""
    try:
        parsed_number = float("null" if typed_text is None else typed_text)
    except ValueError:
        raise range_error(option, f"a number in {interval}", typed_text) from None
    number(option, parsed_number, interval)
    return parsed_number


def parse_integer(option: str, typed_text: str, interval: str) -> int:
    """Return the integer in `typed_text`; raise `OptionError` for `option` if it is none, or outside `interval`."""
    is_digits = typed_text.isascii() and typed_text.isdecimal() and len(typed_text) < 19
    integer(option, int(typed_text) if is_digits else typed_text, interval)
    return int(typed_text)


def choice(option: str, value: object, *valid_choices: str) -> None:
    """Raise `OptionError` for `option` unless `value` is one of `valid_choices`."""
    if not isinstance(value, str) or value not in valid_choices:
        # above the similarity of bfloat16 and float32
        similar_name_hint = did_you_mean(value, valid_choices, min_similarity=0.7)
        raise OptionError(f"{range_error(option, 'one of ' + join_choices(valid_choices), value)}{similar_name_hint}")


def check_distinct_columns(columns: Mapping[str, str | None]) -> None:
    """Raise `OptionError` if two options of `columns` (column by option, None for no column) name the same column."""
    option_by_column: dict[str, str] = {}
    for option, column in columns.items():
        if column is not None and column in option_by_column:
            raise OptionError(f"{option} and {option_by_column[column]} must be two columns, got {column!r} for both")
        if column is not None:
            option_by_column[column] = option


def flag(option: str, value: object) -> None:
    """Raise `OptionError` for `option` unless `value` is true or false."""
    if not isinstance(value, bool):
        raise range_error(option, "true or false", value)


def text(option: str, value: object, *, allow_null: bool = False) -> None:
    """Raise `OptionError` for `option` unless `value` is a non-empty text, or None with `allow_null`."""
    if value is None and allow_null:
        return
    if not isinstance(value, str) or not value.strip():
        raise range_error(option, "a text that is not empty" + (" or null" if allow_null else ""), value)


def is_identifier(value: object) -> bool:
    """Return whether `value` can be the name of a component, a setting or a study, and of its file."""
    return isinstance(value, str) and re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", value) is not None


def identifier(option: str, value: object) -> None:
    """Raise `OptionError` for `option` unless `value` is a name of ASCII letters, digits and underscores."""
    if not is_identifier(value):
        valid_name = re.sub("[^A-Za-z0-9]+", "_", str(value)).strip("_") or "name"
        valid_name = f"x{valid_name}" if valid_name[0].isdigit() else valid_name
        raise range_error(
            option, f"letters, digits and underscores without a digit in front, such as {valid_name}", value
        )


def texts(option: str, value: object) -> None:
    """Raise `OptionError` for `option` unless `value` is a list of texts; it may be empty."""
    if not _is_list(value) or not all(isinstance(list_item, str) for list_item in value):
        raise range_error(option, "a list of texts, as [id,age]", value)


def integers(option: str, value: object, interval: str) -> None:
    """Raise `OptionError` for `option` unless `value` is a list, maybe empty, of integers inside `interval`."""
    if not _is_list(value) or not all(_is_number(list_item, interval, int) for list_item in value):
        raise range_error(option, f"a list of integers in {interval}", value)


def numbers(option: str, value: object, interval: str) -> None:
    """Raise `OptionError` for `option` unless `value` is a list, maybe empty, of numbers inside `interval`."""
    if not _is_list(value) or not all(_is_number(list_item, interval, int | float) for list_item in value):
        raise range_error(option, f"a list of numbers in {interval}", value)


def words(option: str, value: object, *allowed_texts: str) -> None:
    """Raise `OptionError` for `option` unless `value` is a list of one or more different `allowed_texts`."""
    listed_texts = value if _is_list(value) else ()
    is_distinct = len(set(map(str, listed_texts))) == len(listed_texts)
    if not listed_texts or not is_distinct or not all(k in allowed_texts for k in listed_texts):
        raise range_error(option, f"a list of one or more of {join_choices(allowed_texts)}, none twice", value)
