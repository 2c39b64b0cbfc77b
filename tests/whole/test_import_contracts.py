"""Each import contract of pyproject.toml reports a forbidden import, and the folders of tests mirror those of src."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config_options import ROOT

LAYERS = "packages import only from lower layers, and each package is in exactly one layer"
BREAKING_IMPORTS = {  # (module, import added to it): (contract that it breaks, import named in the output)
    ("types.py", "from fedcohort import flat"): (LAYERS, "fedcohort.types -> fedcohort.flat"),
    ("training/step.py", "import fedcohort.round.jobs"): (LAYERS, "fedcohort.training.step -> fedcohort.round.jobs"),
    ("deadline/fixed.py", "import fedcohort.codec.none"): (LAYERS, "fedcohort.deadline.fixed -> fedcohort.codec.none"),
    ("selector/powd.py", "import fedcohort.selector.flash"): (
        "no selector imports another selector",
        "fedcohort.selector.powd -> fedcohort.selector.flash",
    ),
    ("agg/qffl.py", "import fedcohort.agg.afl"): (
        "no aggregator imports another aggregator",
        "fedcohort.agg.qffl -> fedcohort.agg.afl",
    ),
    ("selector/feel.py", "import fedcohort.agg.base"): (
        "selectors import no model, dataset, aggregator or training code",
        "fedcohort.selector.feel -> fedcohort.agg.base",
    ),
    ("round/uniform.py", "import hydra"): ("only startup and jobs import Hydra", "fedcohort.round.uniform -> hydra"),
    ("record/metadata.py", "import lightning"): (
        "only fedcohort.lightning imports Lightning",
        "fedcohort.record.metadata -> lightning",
    ),
    ("jobs/status.py", "import mlflow"): (
        "only fedcohort.tracking imports MLflow",
        "fedcohort.jobs.status -> mlflow",
    ),
    ("host/disk.py", "import matplotlib"): (
        "only fedcohort.report imports matplotlib, jinja2 and markdown_it",
        "fedcohort.host.disk -> matplotlib",
    ),
}
FOLDERS_WITHOUT_PACKAGE = {"lints", "laws", "whole", "heterogeneity"}  # heterogeneity presets consist of yaml alone


def run_import_linter(folder: Path) -> str:
    """Return the output of import-linter for the copy of the package in `folder`, one line per contract."""
    pytest.importorskip("importlinter")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    process = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    return process.stdout + process.stderr


def test_each_contract_reports_a_forbidden_import(tmp_path: Path) -> None:
    package = tmp_path / "fedcohort"
    shutil.copytree(ROOT / "src" / "fedcohort", package, ignore=shutil.ignore_patterns("__pycache__"))
    for module, statement in BREAKING_IMPORTS:
        with (package / module).open("a") as file:
            file.write(f"\n{statement}\n")
    output = run_import_linter(tmp_path)
    for contract, forbidden_import in BREAKING_IMPORTS.values():
        assert any(contract in line and "BROKEN" in line for line in output.splitlines()), contract
        assert forbidden_import in output, forbidden_import
    (package / "unassigned.py").write_text("")  # a module in no layer
    assert "unassigned" in run_import_linter(tmp_path).partition(LAYERS)[2]


def test_each_test_file_mirrors_a_module_of_the_package() -> None:
    """tests/<path>/test_<module>[_<topic>].py tests src/fedcohort/<path>/<module>.py, or the package of that name."""
    source = ROOT / "src" / "fedcohort"
    misplaced_tests = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.relative_to(ROOT / "tests").parent
        if folder.parts[:1] and folder.parts[0] in FOLDERS_WITHOUT_PACKAGE:
            continue
        stem_words = path.stem.removeprefix("test_").split("_")
        module_names = ["_".join(stem_words[:n]) for n in range(1, len(stem_words) + 1)]
        tested_paths = [source / folder / end for name in module_names for end in (f"{name}.py", name)]
        tested_paths += [ROOT / "configs" / folder / f"{name}.yaml" for name in module_names]  # aliases have no module
        if not any(tested_path.exists() for tested_path in tested_paths):
            misplaced_tests.append(str(path.relative_to(ROOT)))
    assert not misplaced_tests
