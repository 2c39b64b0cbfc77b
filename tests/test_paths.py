"""Paths as users type them."""

from pathlib import Path

import pytest

from fedcohort.paths import expand_home


def test_a_home_folder_is_expanded_where_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert expand_home("~/data") == Path("/home/me/data")
    assert expand_home("~nobody_of_this_name/data") == Path("~nobody_of_this_name/data")
    assert expand_home("data") == Path("data")
