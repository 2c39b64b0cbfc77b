"""Narrow an optional value that a test expects to exist."""

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return the value, and fail if it is None."""
    assert value is not None
    return value
