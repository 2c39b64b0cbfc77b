"""Oracles are known by the name of their selector."""

import pytest

from fedcohort.results.oracles import reads_unknowable


@pytest.mark.parametrize("name", ["oracle_clean", "oracle_greedy", "oracle_groups", "worst"])
def test_a_selector_that_reads_what_no_server_can_know(name: str) -> None:
    assert reads_unknowable(name)


@pytest.mark.parametrize("name", ["random", "flash", "flash_whitened", "hcsfed", "oracle_fast", "../base", "none"])
def test_other_names(name: str) -> None:
    """A variant has no module, and an expected duration is known to a server."""
    assert not reads_unknowable(name)
