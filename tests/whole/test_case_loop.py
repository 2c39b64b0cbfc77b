"""A test decorated with `for_all` runs every case, and a failure names its case."""

import pytest

from case_loop import for_all
from failure_hints import failure_hint

CALLS: list[tuple[int, str, int]] = []


@pytest.fixture
def base() -> int:
    return 100


@for_all("n, text", [(1, "one"), (2, "two")])
@for_all("step", (1, 10), ("small", "large"))
@failure_hint("Keep n below 3.")
def test_every_case_is_called_with_the_fixtures(base: int, n: int, text: str, step: int) -> None:
    CALLS.append((base + n, text, step))
    assert n < 3


def test_all_cases_of_a_looped_test_were_called() -> None:
    assert CALLS[-4:] == [(101, "one", 1), (101, "one", 10), (102, "two", 1), (102, "two", 10)]


@for_all("step", (1, 10), ("small", "large"))
@for_all("n", [1, 5])
@failure_hint("Keep n below 3.")
def fail_at_five(n: int, step: int) -> None:
    assert n * step < 30, f"{n * step}"


def test_a_failure_names_the_case() -> None:
    with pytest.raises(AssertionError, match=r"^Keep n below 3\.\n\n50") as caught:
        fail_at_five()
    assert caught.value.__notes__ == ["in the case n = 5", "in the case step = large"]
