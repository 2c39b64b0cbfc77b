"""Tables and options of availability=trace that are rejected, each with file, row and reason."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from availability.test_trace import TABLE, UNIX, trace, write
from fedcohort.errors import DataError, OptionError
from fedcohort.rng import Draws
from run_harness import run_training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client": [30, 10, None, 10, 20]}, r"availability.client: .*, row 2 is empty"),
        (
            {"client": [30.5, 10, 20, 10, 20]},
            r"availability.client: .*, row 0 has name 30.5; names are texts, or whole numbers",
        ),
        ({"start_s": [0, 10, 0, 40, None]}, r"availability.start: .*: column 'start_s', row 4 is empty"),
        ({"start_s": [0, float("nan"), 0, 40, 20]}, r"column 'start_s', row 1 has a value that is NaN or infinite"),
        (
            {"start_s": [-1, 10, 0, 40, 20]},
            r"column 'start_s', row 0 holds -1.0, which must be in \[0, 1e11\], seconds",
        ),
        ({"end_s": [60, 20, "late", 50, 30]}, r"availability.end: .*, row 2 holds 'late', which is not a number"),
        ({"end_s": [60, 20, 20, 50, 20]}, r"row 4 begins at 20 and ends at 20: an interval must be at least"),
        ({"end_s": [60, 5, 20, 50, 30]}, r"row 1 begins at 10 and ends at 5: an interval must be at least"),
        ({"end_s": [60, 45, 20, 50, 30]}, r"row 3 begins at 40, before row 1 of the same client ends at 45"),
        (
            {"start_s": [0, 45, 0, 10, 20], "end_s": [60, 50, 20, 20, 30]},
            r"row 3 begins at 10, before row 1 .* in order",
        ),
        (
            {"state": [1, 1, "no", 1, 0]},
            r"availability.state: .*: column 'state', row 2 holds 'no', which is not a number",
        ),
        ({"state": [1, 1, 2, 1, 0]}, r"availability.state: .*: column 'state', row 2 holds 2: expected 1, 0, or -1"),
        (
            {"end_s": [60, 20, 20, 50, 1e308]},
            r"availability.end: .*, row 4 holds 1e\+308, which float32 can't hold",
        ),
        ({"end_s": [60, 20, 20, 50, 2e9]}, r"availability.end: .*: row 4 ends 2e\+09 seconds after the table begins"),
        ({"start_s": [1e-7, 10, 0, 40, 20], "end_s": [2e-7, 20, 20, 50, 30]}, r"row 0 .* interval must be at least"),
        (
            {"own": [60, 100, 1e10, 100, 1e10]},
            r"availability.period: .*, row 2 holds 1.*, which must be in \[1e-3, 1e9\]",
        ),
        ({"state": [0, 0, -1, 0, 0]}, r"availability.path: .*ready.parquet has no client that is ever available"),
        ({"own": [60, 100, 50, 99, 50]}, r"availability.period: .*: row 3 has a period of 99 .*row 1 .* 100"),
        ({"own": [60, 100, 25, 100, 25]}, r"availability.period: .*: row 4 ends at 30, after its period of 25 seconds"),
    ],
)
def test_an_invalid_table_is_rejected_with_file_row_and_reason(
    tmp_path: Path, changes: Mapping[str, Sequence[Any]], message: str
) -> None:
    columns = {**TABLE, **changes}
    if any(isinstance(cell, str) for cell in changes.get("state", [])) or "late" in changes.get("end_s", []):
        columns = {name: [str(cell) if name in changes else cell for cell in cells] for name, cells in columns.items()}
    path = write(tmp_path, columns)
    with pytest.raises(DataError, match=message) as caught:
        trace(path, state="state", period="own" if "own" in changes else None).schedule(Draws(0, 3))
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "begin"}, r"availability.start: .* has no column 'begin'; it has client, start_s, end_s, state"),
        ({"state": "there"}, r"availability.state: .* has no column 'there'"),
        ({"period_s": 45}, r"availability.period_s: .*: row 3 ends at 50, after its period of 45 seconds"),
    ],
)
def test_options_that_contradict_the_table_are_rejected(
    tmp_path: Path, options: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        trace(write(tmp_path, TABLE), **options).schedule(Draws(0, 3))


def test_too_few_clients_are_rejected_unless_they_are_drawn(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE)
    with pytest.raises(DataError, match=r"has 3 devices, too few for 4 clients: set availability.assign=drawn"):
        trace(path).schedule(Draws(0, 4))
    assert len(trace(path, assign="drawn").schedule(Draws(0, 4)).seconds_until_ready(0)) == 4


def test_a_missing_client_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, {**TABLE, "client": [1 if name == 10 else name // 10 + 1 for name in TABLE["client"]]})
    with pytest.raises(DataError, match=r"has clients 1 to 1 and then 3: add client 2, or set availability"):
        trace(path).schedule(Draws(0, 3))
    assert len(trace(path, assign="drawn").schedule(Draws(0, 3)).seconds_until_ready(0)) == 3


def test_a_pickle_is_rejected(tmp_path: Path) -> None:
    pickled = tmp_path / "ready.pkl"
    pickled.write_bytes(pickle.dumps(TABLE))
    with pytest.raises(OptionError, match=r"path must be a file that ends in .parquet or .csv, got .*ready.pkl"):
        replace(trace("ready.csv"), path=str(pickled))
    with pytest.raises(DataError, match=r"availability.path: .* can't be read, it is truncated or no parquet file"):
        trace(str(pickled.rename(tmp_path / "ready.parquet"))).schedule(Draws(0, 3))
    with pytest.raises(DataError, match="there is no such file"):
        trace(str(tmp_path / "nowhere.csv")).schedule(Draws(0, 3))


@pytest.mark.parametrize("option", ["state", "period"])
def test_the_name_of_a_column_is_a_text(option: str) -> None:
    with pytest.raises(OptionError, match=f"{option} must be"):
        replace(trace("ready.csv"), **{option: ""})  # type: ignore[arg-type]


def test_milliseconds_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, {"client": [0], "start_s": [1000 * UNIX], "end_s": [1000 * UNIX + 50]})
    with pytest.raises(DataError, match=r"availability.start: .*seconds \(divide milliseconds by 1000\)"):
        trace(path).schedule(Draws(0, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"period": "own", "period_s": 60},
            r"period=own \(a column\) and period_s=60 \(one number for all clients\) exclude each other",
        ),
        ({"end": "start_s"}, "end and start must be two columns, got 'start_s' for both"),
        ({"start": "client"}, "start and client must be two columns"),
        ({"state": "own", "period": "own"}, "period and state must be two columns"),
        ({"step_s": 1e308}, r"step_s must be a number in \[1e-3, 1e9\]"),
        ({"period_s": 1e-12}, r"period_s must be a number in \[1e-3, 1e9\]"),
    ],
)
def test_options_that_contradict_each_other_are_rejected(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replace(trace("ready.csv"), **options)


def test_an_error_is_raised_before_a_run_writes_anything(tmp_path: Path) -> None:
    path = write(tmp_path, {**TABLE, "end_s": [60, 5, 20, 50, 30]})
    with pytest.raises(DataError, match="row 1 begins at 10 and ends at 5"):
        run_training(tmp_path, "availability=trace", f"availability.path={path}", "availability.assign=drawn")
    assert not list(tmp_path.glob("runs/*/*"))
