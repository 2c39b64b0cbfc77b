"""A law over many cases in one test calls every case, and names the one that fails."""

import pytest

from cases import for_all
from remedies import remedy

CALLED: list[tuple[int, str, int]] = []


@pytest.fixture
def base() -> int:
    return 100


@for_all("n, text", [(1, "one"), (2, "two")])
@for_all("step", (1, 10), ("small", "large"))
@remedy("Keep n below 3.")
def test_every_case_is_called_with_the_fixtures(base: int, n: int, text: str, step: int) -> None:
    CALLED.append((base + n, text, step))
    assert n < 3


def test_all_cases_were_called() -> None:
    assert CALLED[-4:] == [(101, "one", 1), (101, "one", 10), (102, "two", 1), (102, "two", 10)]


@for_all("step", (1, 10), ("small", "large"))
@for_all("n", [1, 5])
@remedy("Keep n below 3.")
def fails_at_five(n: int, step: int) -> None:
    assert n * step < 30, f"{n * step}"


def test_a_failure_names_the_case() -> None:
    with pytest.raises(AssertionError, match=r"^Keep n below 3\.\n\n50") as caught:
        fails_at_five()
    assert caught.value.__notes__ == ["in the case n = 5", "in the case step = large"]
