"""A law that fails says first what its reader can do."""

import pytest

from remedies import remedy


@remedy("Set `stacked = True`.")
def fails_where_odd(n: int) -> None:
    assert n % 2 == 0, "odd"


def test_a_failure_message_begins_with_the_remedy() -> None:
    fails_where_odd(2)
    with pytest.raises(AssertionError, match=r"^Set `stacked = True`\.\n\nodd"):
        fails_where_odd(3)
