"""The tables of speed-ups, and what the pages say of faster methods."""

import csv
from pathlib import Path

import pytest

from fedcohort.study import overview, report
from fedcohort.study.definition import Study
from study.small_study import write_study
from study.test_speed import SIX, UNMET, timed

COSTS = {
    "equal": {"random": [7200.0] * 6, "flash": [3600.0, 3610, 3590, 3600, 3605, 3595], "oracle_clean": [1800.0] * 6},
    "noisy": {"random": [UNMET] * 6, "flash": [UNMET] * 6},
}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return write_study(tmp_path / "one", **{**SIX, "oracles": ["oracle_clean"]})


def test_the_page_has_a_table_per_axis(study: Study) -> None:
    files = report.write_study_report(study, timed(study, COSTS))
    text = (study.folder / "README.md").read_text()
    assert (
        "**To the target**: a run met it in 1 setting. A method is significantly faster than random in 1 of these by "
        "virtual time, in 1 by bytes and in 1 by rounds (paired t-test of log costs" in text
    )
    assert "## Speed-up to the target over random, by virtual time" in text
    path = study.folder / "tables" / "speed_virtual_s.csv"
    assert path in files
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["method", "equal"],
            ["random (cost)", "2 h 0 min"],
            ["flash", "2.00▲ (1.0, 1.0)"],
            ["oracle_clean ‡", "4.00 (1.0, 1.0)"],
        ]


def test_without_a_target_the_page_does_not_mention_it(tmp_path: Path) -> None:
    study = write_study(tmp_path / "one", **{**SIX, "settings": {"equal": {"overrides": [], "target": None}}})
    report.write_study_report(study, timed(study, {"equal": {"random": [UNMET] * 6, "flash": [UNMET] * 6}}))
    text = (study.folder / "README.md").read_text()
    assert "To the target" not in text
    assert "Speed-up" not in text
    assert not list(study.folder.glob("tables/speed*"))
    line = next(line for line in overview.render_page(tmp_path).splitlines() if line.startswith("| equal"))
    assert line.endswith("| – |")


def test_the_page_of_all_studies_names_faster_methods(study: Study) -> None:
    """Two of them, the fastest first; oracles are left out."""
    extended = write_study(
        study.folder, methods=["flash", "powd", "oort"], **{key: SIX[key] for key in ("seeds", "verdict")}
    )
    base = [8.0, 8.1, 7.9, 8, 8, 8]
    costs = {"random": base, **{row: [x / times for x in (8, 8, 8, 8, 8, 8.1)] for row, times in SPEEDS.items()}}
    report.write_study_report(extended, timed(extended, {"equal": costs}, ["bytes"]))
    text = overview.write_overview_page(study.folder.parent).read_text()
    assert "| bytes: powd 7.98 (1.0, 1.0), flash 3.99 (1.0, 1.0) and 1 more |" in text


SPEEDS = {"flash": 4, "powd": 8, "oort": 2}
