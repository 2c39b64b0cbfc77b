"""A table of three clients by hand; `test_trace_invalid.py` has the invalid ones."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from config_options import ROOT, make_typed
from fedcohort.availability.trace import Trace
from fedcohort.errors import DataError, OptionError
from fedcohort.rng import Draws
from run_harness import compose_overrides, run_training

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "device_traces"
TABLE: dict[str, list[Any]] = {  # in the order of names 10, 20, 30; the rows of a client needn't stand together
    "client": [30, 10, 20, 10, 20],
    "start_s": [0, 10, 0, 40, 20],
    "end_s": [60, 20, 20, 50, 30],
    "state": [1, 1, 0, 1, -1],
}


def write(folder: Path, columns: Mapping[str, Sequence[Any]], suffix: str = ".parquet") -> str:
    file, table = folder / f"ready{suffix}", pa.table(dict(columns))
    if suffix == ".csv":
        pa.csv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    return str(file)


def trace(path: str, **changes: Any) -> Trace:
    return make_typed(Trace, "availability", "trace", path=path, **changes)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_clients_take_the_intervals_in_the_order_of_names(tmp_path: Path, suffix: str) -> None:
    """At 15 clients 10, 20 and 30 are there, at 25 the last two, and all begins again at 60."""
    schedule = trace(write(tmp_path, TABLE, suffix)).schedule(Draws(0, 3))
    assert schedule.seconds_until_ready(15).tolist() == [0, 0, 0]
    assert schedule.seconds_until_ready(35).tolist() == [5, 25, 0]
    assert schedule.seconds_until_ready(75).tolist() == [0, 0, 0]
    assert schedule.completion_time(np.arange(3), 15, np.array([8.0, 20, 70])) == pytest.approx([28, 50, 70])


def test_a_state_other_than_one_is_not_ready(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE)
    assert trace(path, state="state").schedule(Draws(0, 3)).seconds_until_ready(15).tolist() == [0, np.inf, 0]
    flags = write(tmp_path, {**TABLE, "state": [True, True, False, True, True]})
    assert trace(flags, state="state").schedule(Draws(0, 3)).seconds_until_ready(15).tolist() == [0, 5, 0]


def test_the_trace_repeats_after_its_period(tmp_path: Path) -> None:
    path = write(tmp_path, {**TABLE, "own": [60, 100, 50, 100, 50]})
    assert trace(path).schedule(Draws(0, 3)).period_s.tolist() == [60, 60, 60]
    assert trace(path, period_s=80).schedule(Draws(0, 3)).seconds_until_ready(70).tolist() == [20, 10, 10]
    assert trace(path, period="own").schedule(Draws(0, 3)).seconds_until_ready(95).tolist() == [15, 5, 0]


def test_options_name_the_columns_and_the_table_may_have_more_clients(tmp_path: Path) -> None:
    path = write(tmp_path, {"who": ["c", "a", "b"], "from": [3, 1, 2], "to": [6.0, 5.0, 4.0]})
    schedule = trace(path, client="who", start="from", end="to").schedule(Draws(0, 2))
    assert schedule.seconds_until_ready(0).tolist() == [1, 2]


def test_clients_are_drawn_with_assign_drawn(tmp_path: Path) -> None:
    """A third of the clients draws each of the three, once a run, by the seed; or half each of those that come."""
    path = write(tmp_path, TABLE)
    draws = Draws(0, 3000)
    waits_s = trace(path, state="state", assign="drawn").schedule(draws).seconds_until_ready(0)
    kinds, counts = np.unique(waits_s, return_counts=True)
    assert kinds.tolist() == [0, 10, np.inf]
    assert (np.abs(counts - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()
    repeat = trace(path, state="state", assign="drawn").schedule(draws).seconds_until_ready(0)
    np.testing.assert_array_equal(waits_s, repeat)
    other_seed = trace(path, state="state", assign="drawn").schedule(Draws(1, 3000)).seconds_until_ready(0)
    assert not np.array_equal(waits_s, other_seed)
    without_idle = trace(path, state="state", assign="drawn", idle=False).schedule(draws).seconds_until_ready(0)
    assert np.isfinite(without_idle).all()
    assert abs((without_idle == 0).sum() - 1500) < 5 * np.sqrt(3000 / 4)


def test_an_interval_of_a_microsecond_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, {"client": [0], "start_s": [0.0], "end_s": [1e-6]})
    assert trace(path).schedule(Draws(0, 1)).end_s.tolist() == [1e-6]


UNIX = 1_700_000_000


@pytest.mark.parametrize("grid", [False, True])
def test_a_table_in_unix_seconds_begins_at_zero(grid: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """UNIX is a multiple of 50, the seconds of a step; the table repeats after its 150 seconds, not after 54 years."""
    clients, starts = [0, 1, 1], [UNIX, UNIX + 50, UNIX + 100]
    if grid:
        columns, options = {"client": clients, "step": [s // 50 for s in starts]}, {"start": "step", "step_s": 50}
    else:
        columns, options = {"client": clients, "start_s": starts, "end_s": [s + 50 for s in starts]}, {}
    schedule = trace(write(tmp_path, columns), **options).schedule(Draws(0, 2))
    assert (schedule.start_s.tolist(), schedule.end_s.tolist()) == ([0, 50], [50, 150])
    assert schedule.period_s.tolist() == [150, 150]
    (line,) = caplog.messages
    assert "begins at 1700000000 seconds, as in UNIX time" in line


@pytest.mark.parametrize("first_s", [UNIX / 100, 1e8])
def test_a_table_in_virtual_seconds_is_not_moved(
    first_s: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, {"client": [0], "start_s": [first_s], "end_s": [first_s + 50]})
    assert trace(path).schedule(Draws(0, 1)).start_s.tolist() == [first_s]
    assert not caplog.messages


def test_steps_are_integers_and_replace_the_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grid: dict[str, list[Any]] = {"client": [0, 0], "step": [0, 1.5], "end_s": [7, 8]}
    options = {"start": "step", "step_s": 30}
    with pytest.raises(DataError, match=r"availability.start: .*, row 1 holds 1.5: expected an integer"):
        trace(write(tmp_path, grid), **options).schedule(Draws(0, 1))
    schedule = trace(write(tmp_path, {**grid, "step": [0, 2]}), **options).schedule(Draws(0, 1))
    assert schedule.end_s.tolist() == [30, 90]
    assert "its column 'end_s' is not read (availability.step_s=null reads it)" in caplog.text


def test_the_phones_option_names_the_columns_of_its_table(tmp_path: Path) -> None:
    """Three devices in half hours: one is ready in the second, one unknown throughout, one not ready."""
    columns = {
        "device": [0, 0, 1, 2],
        "state": [-1, 1, -1, 0],
        "start_s": [0, 1800, 0, 0],
        "end_s": [1800, 3600, 3600, 3600],
    }
    path = write(tmp_path, columns)
    options = dict(compose_overrides("availability=phones", f"availability.path={path}").config["availability"])
    target = options.pop("_target_")
    assert target == f"{Trace.__module__}.{Trace.__name__}"
    waits_s = Trace(**options).schedule(Draws(0, 600)).seconds_until_ready(0)
    assert set(waits_s.tolist()) == {1800.0, np.inf}
    assert abs((waits_s == 1800).sum() - 200) < 5 * np.sqrt(600 * 2 / 9)
    assert (Trace(**{**options, "idle": False}).schedule(Draws(0, 600)).seconds_until_ready(0) == 1800).all()


def test_the_table_of_the_phones_is_not_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DataError, match=r"availability_intervals.parquet: there is no such file .*fedcohort contains no such table"
    ):
        run_training(tmp_path, "availability=phones")
    page = " ".join((ROOT / "docs" / "composing.md").read_text().split())
    assert "The table is not part of fedcohort" in page


def test_a_grid_is_equal_to_its_intervals(tmp_path: Path) -> None:
    """Client 0 is there in the steps 1, 2 and 4 of five, client 1 in the first: rows of neighbours are one interval."""
    grid = {"client": [0] * 5 + [1] * 5, "step": [*range(5)] * 2, "state": [0, 1, 1, -1, 1, 1, 0, 0, 0, -1]}
    intervals = trace(write(tmp_path, grid), start="step", end="none", step_s=30, state="state").schedule(Draws(0, 2))
    assert (intervals.start_s.tolist(), intervals.end_s.tolist()) == ([30, 120, 0], [90, 150, 30])
    assert (intervals.first_interval.tolist(), intervals.stop_interval.tolist(), intervals.period_s.tolist()) == (
        [0, 2],
        [2, 3],
        [150, 150],
    )
    repeated_step = {**grid, "step": [0, 1, 1, 3, 4, *range(5)]}
    with pytest.raises(DataError, match=r"row 2 begins at 30, before row 1 of the same client ends at 60"):
        trace(write(tmp_path, repeated_step), start="step", step_s=30, state="state").schedule(Draws(0, 2))
    with pytest.raises(OptionError, match=r"step_s must be a number in \[1e-3, 1e9\] or null, got 0"):
        replace(trace("ready.csv"), step_s=0)


def test_both_tables_of_the_phones_agree() -> None:
    folder = SHARED
    if not folder.is_dir():
        pytest.skip("no ../shared/data/device_traces beside the repository: the real data are shared, not committed")
    grid = ("start=time_index", "step_s=1800", "state=available")
    schedules = []
    for table, column_options in (("intervals", ()), ("grid", grid)):
        path = folder / f"availability_{table}.parquet"
        overrides = [f"availability.{option}" for option in (f"path={path}", *column_options)]
        options = dict(compose_overrides("availability=phones", *overrides).config["availability"])
        options.pop("_target_")
        schedules.append(Trace(**options).schedule(Draws(0, 400)))
    for field in fields(schedules[0]):
        np.testing.assert_array_equal(getattr(schedules[0], field.name), getattr(schedules[1], field.name))


@pytest.mark.parametrize(
    ("assign", "idle", "expected_count"), [("by_id", False, 1), ("by_id", True, 0), ("drawn", False, 0)]
)
def test_a_notice_says_that_idle_has_no_effect_without_drawing(assign: str, idle: bool, expected_count: int) -> None:
    lines = trace("ready.parquet", assign=assign, idle=idle).notices("trace")
    assert [line.split(":")[0] for line in lines] == expected_count * [
        "availability.idle=false has no effect with availability.assign=by_id"
    ]
