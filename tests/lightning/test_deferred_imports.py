"""Modules that Lightning imports without need are absent during a run, and complete if a user imports them."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.lightning import deferred_imports
from fedcohort.lightning.deferred_imports import defer_slow_imports

WHOLE_RUN = """
import sys
import torch

from run_harness import run_training

run = run_training(sys.argv[1], "model=mlp", "client=adam", "rounds=1")
absent = {"torch._dynamo", "torch._inductor", "sympy", "scipy.signal", "scipy.special", "pandas", "mlflow"}
assert not absent & sys.modules.keys(), absent & sys.modules.keys()

from lightning.fabric.wrappers import OptimizedModule
from lightning.pytorch.trainer.connectors.logger_connector.result import _ResultCollection

network = torch.nn.Linear(2, 2)
assert not isinstance(network, OptimizedModule)
assert list(_ResultCollection(True).valid_items()) == []
compiled = torch.compile(network, backend="eager")
assert torch.equal(compiled(torch.ones(1, 2)), network(torch.ones(1, 2)))
assert isinstance(compiled, OptimizedModule)
assert isinstance(compiled, torch._dynamo.OptimizedModule)
assert list(_ResultCollection(True).valid_items()) == []  # by the compiler's own decorator now
import scipy.signal
assert scipy.signal.windows.hamming(3)[1] == 1
"""


def test_deferred_modules_are_not_imported_and_torch_compile_works(tmp_path: Path) -> None:
    """The check runs in a separate process, because pytest's has imported the modules."""
    process = subprocess.run(
        [sys.executable, "-c", WHOLE_RUN, str(tmp_path)],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


NAME = "wsgiref.handlers"  # of the standard library; nothing else imports it


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("wsgiref.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(deferred_imports, "STAND_IN_NAMES", {NAME: {"BaseHandler": "stand-in"}})


def test_a_stand_in_has_the_declared_names_until_the_block_ends() -> None:
    with defer_slow_imports():
        assert import_module(NAME).BaseHandler == "stand-in"
    assert NAME not in sys.modules
    assert isinstance(import_module(NAME).BaseHandler, type)


def test_an_undeclared_name_imports_the_real_module() -> None:
    with defer_slow_imports():
        module = import_module(NAME)
        assert not hasattr(module, "__file__"), "inspect reads it of every module"
        assert "wsgiref.util" not in sys.modules
        assert isinstance(module.SimpleHandler, type)
        assert sys.modules[NAME] is not module
        assert "wsgiref.util" in sys.modules, "which the module imports"
    assert NAME in sys.modules


def test_an_imported_module_gets_no_stand_in() -> None:
    module = import_module(NAME)
    with defer_slow_imports():
        assert sys.modules[NAME] is module
    assert sys.modules[NAME] is module


def test_an_import_of_a_submodule_imports_the_package_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision imports `torch._dynamo.utils`, and torchmetrics imports torchvision where it is installed."""
    (tmp_path / "outer_package" / "inner").mkdir(parents=True)
    (tmp_path / "outer_package" / "__init__.py").touch()
    (tmp_path / "outer_package" / "inner" / "__init__.py").write_text("from outer_package.inner.loaded import VALUE\n")
    for name in ("loaded", "other"):
        (tmp_path / "outer_package" / "inner" / f"{name}.py").write_text(f"VALUE = [{name!r}]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(deferred_imports, "STAND_IN_NAMES", {"outer_package.inner": {"VALUE": "stand-in"}})
    with defer_slow_imports():
        stand_in = import_module("outer_package.inner")
        loaded, other_module = (import_module(f"outer_package.inner.{name}") for name in ("loaded", "other"))
        package = import_module("outer_package.inner")
    assert package is not stand_in
    assert package.VALUE is loaded.VALUE, "the submodule that the package imports runs once"
    assert other_module.VALUE == ["other"]
    assert (package.loaded, package.other) == (loaded, other_module)
    assert loaded.__spec__ is not None
    assert loaded.__spec__.origin == str(tmp_path / "outer_package" / "inner" / "loaded.py")
    assert sys.modules["outer_package.inner"] is package
