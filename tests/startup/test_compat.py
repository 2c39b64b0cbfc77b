"""Undocumented behaviour of Hydra and joblib is as expected; otherwise the error names the version."""

import sys
from importlib.metadata import version
from types import ModuleType

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from fedcohort.errors import LibraryMismatch
from fedcohort.startup import compat


def test_the_jobs_of_a_sweep_are_listed() -> None:
    parsed = OverridesParser.create().parse_overrides(["selector=random,flash", "seed=0,1"])
    assert len(compat.list_job_overrides(parsed)) == 4


def test_a_missing_library_function_is_named_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "hydra._internal.core_plugins.basic_sweeper"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(LibraryMismatch, match=rf"hydra-core {version('hydra-core')} is installed, and BasicSweeper\."):
        compat.list_job_overrides([])
