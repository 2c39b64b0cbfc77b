"""FedScale's traces become a table that availability=trace reads, and a pickle that would call something is refused."""

import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fedcohort.rng import Draws
from scripts import load_script
from yaml_words import make

TRACES: dict[int, dict[str, Any]] = {
    9: {"duration": 3, "inactive": [30, 90], "active": [10, 60], "finish_time": 80, "model": "CPH1801"},
    4: {"duration": 3, "inactive": [20, 40, 45], "active": [0, 20, 30], "finish_time": 100.0, "model": "x"},
    5: {"inactive": [20, 5], "active": [20, 8], "finish_time": 50, "model": "y"},
}


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    load_script("fedscale_devices", monkeypatch)
    return load_script("fedscale_availability", monkeypatch)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_active_intervals_repeat_with_each_clients_own_time(
    converter: ModuleType, tmp_path: Path, protocol: int
) -> None:
    source, target = tmp_path / "client_behave_trace", tmp_path / "ready.parquet"
    source.write_bytes(pickle.dumps(TRACES, protocol))
    assert converter.main([str(source), str(target)]) == 0
    trace = make("availability", "trace", path=str(target), state="state", period="period_s")
    schedule = trace.schedule(Draws(0, 3))
    assert schedule.period.tolist() == [100, 50, 80]
    for now in np.arange(0.5, 400):
        expected = [
            any(a <= now % each["finish_time"] <= b for a, b in zip(each["active"], each["inactive"], strict=True))
            for _, each in sorted(TRACES.items())
        ]
        assert (schedule.seconds_until_ready(float(now)) == 0).tolist() == expected
    assert list(converter.make_rows(4, TRACES[4])) == [(4, 0, 45, 1, 100)]
    assert list(converter.make_rows(5, TRACES[5])) == [(5, 0, 50, 0, 50)]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (print, "it wants builtins.print"),
        ([1], "it holds no clients, but a list"),
        ({}, "it holds no clients"),
        ({"a": TRACES[4]}, "its clients must be integers"),
        ({1: 5.0}, "client 1 must have a finish_time above 0, it has None"),
        ({1: {**TRACES[4], "finish_time": 0}}, "client 1 must have a finish_time above 0, it has 0"),
        ({1: {**TRACES[4], "active": [0, float("nan"), 3]}}, "client 1 must have a list of seconds in active"),
        ({1: {**TRACES[4], "inactive": None}}, "client 1 must have a list of seconds in inactive, it has None"),
        ({1: {**TRACES[4], "active": [0, 20]}}, "client 1 comes 2 times and leaves 3 times"),
    ],
)
def test_what_is_no_trace_is_refused(
    converter: ModuleType, tmp_path: Path, held: object, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client_behave_trace"
    file.write_bytes(pickle.dumps(held))
    assert converter.main([str(file), str(tmp_path / "ready.parquet")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "ready.parquet").exists()


def test_its_usage(converter: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert converter.main(["one"]) == converter.main(["one", "table.csv"]) == 2
    assert "usage" in capsys.readouterr().err
