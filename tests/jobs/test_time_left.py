"""How long a study may take goes by what its own rows took."""

from pathlib import Path

import pytest

from fedcohort.jobs.time_left import WallTimeEstimate
from fedcohort.study.progress import estimate_time_left as estimate
from fedcohort.study.results import Results

WALL_TIMES = {("equal", "random"): [2.0, 3.0, 4.0], ("equal", "worst"): [30.0], ("noisy", "random"): [5.0]}


def make_forecast(wall_times: dict[tuple[str, str], list[float]], folder: Path) -> WallTimeEstimate[tuple[str, str]]:
    study_results = Results(folder)
    for (cell, row), seconds in wall_times.items():
        for seed, wall_s in enumerate(seconds):
            study_results.rows[cell, row, seed] = {"status": "done", "wall_s": wall_s}
    return estimate(study_results)


@pytest.mark.parametrize(
    ("cell", "row", "seconds"),
    [
        ("equal", "random", 3.0),  # its own median
        ("slow", "random", 3.5),  # of 2 3 4 5, the row's elsewhere
        ("noisy", "worst", 30.0),
        ("noisy", "flash", 4.0),  # median of 2 3 4 5 30: the method is unknown
    ],
)
def test_the_expected_time_of_a_run_is_that_of_equal_runs(tmp_path: Path, cell: str, row: str, seconds: float) -> None:
    forecast = make_forecast(WALL_TIMES, tmp_path)
    assert forecast.estimate_seconds([(cell, row)]) == seconds
    assert forecast.estimate_seconds([(cell, row)] * 3) == 3 * seconds


def test_the_time_left_of_a_new_study_follows_from_its_finished_runs(tmp_path: Path) -> None:
    forecast = make_forecast({}, tmp_path)
    random, flash = ("equal", "random"), ("equal", "flash")
    assert forecast.estimate_seconds([random, flash]) == 0.0
    forecast.add_run(random, 2.0)
    forecast.add_run(flash, 6.0)
    assert forecast.estimate_seconds([random, flash]) == 8.0
