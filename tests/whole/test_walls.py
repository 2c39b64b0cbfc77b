"""The rules of imports in pyproject.toml, by breaking each in a copy; and that tests stand where the code does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from yaml_words import ROOT

STOREYS = "imports point down, and every room stands in one storey"
PLANTED = {  # a line at the end of a module -> the contract that it breaks, and the arrow that must be named
    ("types.py", "from fedcohort import flat"): (STOREYS, "fedcohort.types -> fedcohort.flat"),
    ("training/step.py", "import fedcohort.round.jobs"): (
        STOREYS,
        "fedcohort.training.step -> fedcohort.round.jobs",
    ),
    ("deadline/fixed.py", "import fedcohort.codec.none"): (STOREYS, "fedcohort.deadline.fixed -> fedcohort.codec.none"),
    ("selector/powd.py", "import fedcohort.selector.flash"): (
        "a selector knows no other selector",
        "fedcohort.selector.powd -> fedcohort.selector.flash",
    ),
    ("agg/qffl.py", "import fedcohort.agg.afl"): (
        "an aggregator knows no other aggregator",
        "fedcohort.agg.qffl -> fedcohort.agg.afl",
    ),
    ("selector/feel.py", "import fedcohort.agg.base"): (
        "a selector sees no model, no data set and no aggregator",
        "fedcohort.selector.feel -> fedcohort.agg.base",
    ),
    ("round/uniform.py", "import hydra"): (
        "Hydra is imported by startup and jobs only",
        "fedcohort.round.uniform -> hydra",
    ),
    ("record/metadata.py", "import lightning"): (
        "Lightning has a room of its own",
        "fedcohort.record.metadata -> lightning",
    ),
    ("jobs/status.py", "import mlflow"): ("MLflow has a package of its own", "fedcohort.jobs.status -> mlflow"),
    ("host/disk.py", "import matplotlib"): (
        "pages and figures have a package of their own",
        "fedcohort.host.disk -> matplotlib",
    ),
}
WITHOUT_SOURCE = {
    "lints",
    "laws",
    "whole",
    "heterogeneity",
}  # tests of groups, of the program, of presets that are yaml alone


def lint(copy: Path) -> str:
    """What import-linter says of the package in `copy`, on one line a contract."""
    pytest.importorskip("importlinter")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        capture_output=True,
        text=True,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
    )
    return done.stdout + done.stderr


def test_each_rule_is_broken_by_what_it_forbids(tmp_path: Path) -> None:
    package = tmp_path / "fedcohort"
    shutil.copytree(ROOT / "src" / "fedcohort", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, line in PLANTED:
        with (package / name).open("a") as file:
            file.write(f"\n{line}\n")
    output = lint(tmp_path)
    for contract, arrow in PLANTED.values():
        assert any(contract in line and "BROKEN" in line for line in output.splitlines()), contract
        assert arrow in output, arrow
    (package / "loose.py").write_text("")
    assert "loose" in lint(tmp_path).partition(STOREYS)[2]


def test_tests_stand_where_the_code_does() -> None:
    """tests/<path>/test_<module>[_<more>].py tests src/fedcohort/<path>/<module>.py, or the package of that name."""
    source, astray = ROOT / "src" / "fedcohort", []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = path.relative_to(ROOT / "tests").parent
        if folder.parts[:1] and folder.parts[0] in WITHOUT_SOURCE:
            continue
        words = path.stem.removeprefix("test_").split("_")
        names = ["_".join(words[:n]) for n in range(1, len(words) + 1)]
        homes = [source / folder / end for name in names for end in (f"{name}.py", name)]
        homes += [ROOT / "configs" / folder / f"{name}.yaml" for name in names]  # a word that stands for others
        if not any(home.exists() for home in homes):
            astray.append(str(path.relative_to(ROOT)))
    assert not astray
