"""The message of a failed law begins with advice for the author of a method."""

import pytest

from failure_hints import failure_hint


@failure_hint("Set `stacked = True`.")
def assert_even(n: int) -> None:
    assert n % 2 == 0, "odd"


def test_a_failure_message_begins_with_the_hint() -> None:
    assert_even(2)
    with pytest.raises(AssertionError, match=r"^Set `stacked = True`\.\n\nodd"):
        assert_even(3)
