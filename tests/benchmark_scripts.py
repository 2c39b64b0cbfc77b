"""Import the scripts of benchmarks/ in tests."""

import importlib.util
import sys
from types import ModuleType

import pytest

from config_options import ROOT
from optional_values import not_none


def load_script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import benchmarks/<name>.py as a module, for one test."""
    spec = not_none(importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")  # for imports of other scripts
    monkeypatch.setitem(sys.modules, name, module)  # dataclasses look up their module
    not_none(spec.loader).exec_module(module)
    return module
