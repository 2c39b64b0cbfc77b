"""What a study's page and the page of all studies say of who is sooner at the target."""

import csv
from pathlib import Path

import pytest

from fedcohort.study import overview, report
from fedcohort.study.definition import Study
from study.test_speed import NEVER, SIX, timed
from study.tiny import write

SPREAD = (1.0, 1.0, 0.998, 1.002, 0.997, 1.003)  # over seeds: without one there is no test
TOOK = {
    "equal": {
        "random": [7200.0 * x for x in SPREAD],
        "flash": [3600.0] * 6,
        "powd": [8000.0] * 6,
        "oracle_clean": [1800.0] * 6,
    },
    "noisy": {"random": [NEVER] * 6, "flash": [NEVER] * 6, "powd": [4e8 * x for x in SPREAD]},
}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study whose second row is in two regimes, and whose p is small enough all the same."""
    return write(tmp_path / "one", **{**SIX, "win": {"seeds": 4, "alpha": 0.1}, "yardsticks": ["oracle_clean"]})


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_the_page_has_a_table_a_unit(study: Study) -> None:
    files = report.write(study, timed(study, TOOK))
    text = (study.folder / "README.md").read_text()
    assert (
        "**To the target**: of the 2 regimes where it was met, a method is sooner there than random in 2 by virtual "
        "time, in 2 by bytes and in 2 by rounds.\n" in text
    )
    assert "## Times as fast as random to the target, by virtual time" in text
    assert "*>=*: only the baseline never met it on some seed" in text
    path = study.folder / "tables" / "speed_virtual_s.csv"
    assert path in files
    assert rows_of(path) == [
        ["selector", "equal", "noisy"],
        ["random", "2 h 0 min", "0 of 6"],
        ["flash", "2.00▲ (1.0, 1.0)", "–"],
        ["powd", "0.90▼ (1.0, 1.0)", ">=2.50▲ (1.0, 1.0)"],
        ["oracle_clean ‡", "4.00▲ (1.0, 1.0)", "–"],
    ]
    assert rows_of(path.with_name("speed_rounds.csv"))[1] == ["random", "7200 rounds", "0 of 6"]


def test_that_nobody_is_sooner_is_said(tmp_path: Path) -> None:
    study = write(tmp_path, **SIX)
    report.write(study, timed(study, {"equal": {"random": [60.0] * 6, "flash": [60.0] * 5 + [50.0]}}))
    said = "**To the target**: in the one regime where it was met, no method is shown to be sooner there than random."
    assert f"{said}\n" in (tmp_path / "README.md").read_text()


def test_one_regime_has_no_numbers_of_regimes(tmp_path: Path) -> None:
    study = write(tmp_path, **SIX)
    took = {"equal": {"random": [60.0 * x for x in SPREAD], "flash": [20.0] * 6}}
    for units, said in ((["virtual_s"], "virtual time"), (["bytes", "rounds"], "bytes and by rounds")):
        report.write(study, timed(study, took, units))
        opening = f"in the one regime where it was met, a method is sooner there than random by {said}.\n"
        assert f"**To the target**: {opening}" in (tmp_path / "README.md").read_text()


def test_no_target_no_word_of_it(tmp_path: Path) -> None:
    study = write(tmp_path, **{**SIX, "cells": {"equal": {"words": [], "target": None}}})
    report.write(study, timed(study, {"equal": {"random": [NEVER] * 6, "flash": [NEVER] * 6}}))
    text = (tmp_path / "README.md").read_text()
    assert "To the target" not in text
    assert "Times as fast" not in text
    assert not list(tmp_path.glob("tables/speed*"))


def test_the_page_of_all_studies_names_who_is_sooner(study: Study) -> None:
    """Two of them, the soonest first, yardsticks and those that are later left out."""
    more = write(study.folder, selectors=["flash", "powd", "oort"], **{key: SIX[key] for key in ("seeds", "win")})
    took = {"random": [8.0 * x for x in SPREAD], "flash": [2.0] * 6, "powd": [1.0] * 6, "oort": [4.0] * 6}
    report.write(more, timed(more, {"equal": took}, ["bytes"]))
    text = overview.write(study.folder.parent).read_text()
    assert "| bytes: powd 8.00 (1.0, 1.0), flash 4.00 (1.0, 1.0) and 1 more |" in text


def test_a_page_without_targets_has_a_dash(tmp_path: Path) -> None:
    study = write(tmp_path / "one", **SIX)
    report.write(study, timed(study, {"noisy": {"random": [NEVER] * 6, "flash": [NEVER] * 6}}))
    line = next(line for line in overview.page_of(tmp_path).splitlines() if line.startswith("| noisy"))
    assert line.endswith("| – |")
