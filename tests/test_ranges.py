"""The message of a range error: the option, the allowed range, the value."""

import re
from typing import Any

import pytest

from case_loop import for_all
from fedcohort import ranges
from fedcohort.errors import OptionError


@for_all(
    "check, message",
    [
        (lambda: ranges.number("discount", 1.2, "(0, 1]"), "discount must be a number in (0, 1], got 1.2"),
        (lambda: ranges.number("lr", float("nan"), "(0, inf)"), "lr must be a number in (0, inf), got nan"),
        (lambda: ranges.number("lr", "fast", "(0, inf)"), "lr must be a number in (0, inf), got 'fast'"),
        (lambda: ranges.integer("k", 2.0, "[1, inf) "[:-1]), "k must be an integer in [1, inf), got 2.0"),
        (lambda: ranges.integer("k", True, "[1, inf)"), "k must be an integer in [1, inf), got True"),
        (lambda: ranges.integer("k", 10**400, "[1, inf)"), "k must be an integer in [1, inf), got 1000"),
        (lambda: ranges.number("lr", 10**400, "(0, inf)"), "lr must be a number in (0, inf), got 1000"),
        (
            lambda: ranges.check_distinct_columns({"a": "x", "b": None, "c": None, "d": "x"}),
            "d and a must be two columns, got 'x' for both",
        ),
        (lambda: ranges.choice("tie", "coin", "random", "id"), "tie must be one of random, id, got 'coin'"),
        (lambda: ranges.choice("tie", "randm", "random", "id"), "one of random, id, got 'randm'; did you mean random?"),
        (lambda: ranges.flag("ok", 1), "ok must be true or false, got 1"),
        (lambda: ranges.numbers("ms", [1, -1], "[0, inf)"), "ms must be a list of numbers in [0, inf), got [1, -1]"),
        (lambda: ranges.integers("ms", 3, "[0, inf)"), "ms must be a list of integers in [0, inf), got 3"),
        (lambda: ranges.integers("ms", "12", "[0, inf)"), "ms must be a list of integers in [0, inf), got '12'"),
        (
            lambda: ranges.words("x", ["a", "d"], "a", "b"),
            "x must be a list of one or more of a, b, none twice, got ['a',",
        ),
        (
            lambda: ranges.words("x", ["b", "b"], "a", "b"),
            "x must be a list of one or more of a, b, none twice, got ['b',",
        ),
        (lambda: ranges.words("x", [], "a", "b"), "x must be a list of one or more of a, b, none twice, got []"),
        (
            lambda: ranges.identifier("name", "5/50"),
            "name must be letters, digits and underscores without a digit in front, such as x5_50, got '5/50'",
        ),
        (lambda: ranges.identifier("name", "../x"), "such as x, got '../x'"),
        (lambda: ranges.identifier("name", "\u00fc"), "such as name, got"),
        (lambda: ranges.parse_integer("port", "0", "[1, 65535]"), "port must be an integer in [1, 65535], got 0"),
        (lambda: ranges.parse_integer("port", "\u00b2", "[1, 65535]"), "an integer in [1, 65535], got '\u00b2'"),
        (lambda: ranges.parse_integer("n_jobs", "1.0", "[1, inf)"), "n_jobs must be an integer in [1, inf), got '1.0'"),
        (lambda: ranges.parse_integer("n_jobs", "9" * 5000, "[1, inf)"), "n_jobs must be an integer in [1, inf), got"),
        (lambda: ranges.text("path", " "), "path must be a text that is not empty, got ' '"),
        (lambda: ranges.text("path", 5, allow_null=True), "path must be a text that is not empty or null, got 5"),
    ],
)
def test_range_errors_name_option_range_and_value(check: Any, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        check()


def test_open_and_closed_interval_ends_are_respected() -> None:
    ranges.number("x", 1, "(0, 1]")
    ranges.number("x", -4.0, "(-inf, 0)")
    ranges.integer("x", None, "[1, inf)", allow_null=True)
    ranges.text("x", None, allow_null=True)
    ranges.numbers("x", [], "[0, inf)")
    assert ranges.parse_integer("port", "65535", "[1, 65535]") == 65535
    with pytest.raises(OptionError):
        ranges.number("x", 0, "(0, 1]")
    with pytest.raises(OptionError):
        ranges.number("x", float("inf"), "[0, inf)")
