"""The scripts of benchmarks/, for tests of theirs."""

import importlib.util
import sys
from types import ModuleType

import pytest

from known import known
from yaml_words import ROOT


def load_script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import benchmarks/<name>.py as a module, for one test."""
    spec = known(importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # what it imports of its neighbours
    monkeypatch.setitem(sys.modules, name, module)  # a dataclass looks its module up
    known(spec.loader).exec_module(module)
    return module
