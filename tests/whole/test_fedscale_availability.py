"""Tests of benchmarks/fedscale_availability.py: availability=trace reads its table, and bad pickles are rejected."""

import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmark_scripts import load_script
from config_options import make_component
from fedcohort.rng import Draws

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
def test_active_intervals_repeat_with_the_clients_period(converter: ModuleType, tmp_path: Path, protocol: int) -> None:
    source, target = tmp_path / "client_behave_trace", tmp_path / "ready.parquet"
    source.write_bytes(pickle.dumps(TRACES, protocol))
    assert converter.main([str(source), str(target)]) == 0
    trace = make_component("availability", "trace", path=str(target), state="state", period="period_s")
    schedule = trace.schedule(Draws(0, 3))
    assert schedule.period_s.tolist() == [100, 50, 80]
    for time_s in np.arange(0.5, 400):
        expected = [
            any(
                a <= time_s % trace_of_client["finish_time"] <= b
                for a, b in zip(trace_of_client["active"], trace_of_client["inactive"], strict=True)
            )
            for _, trace_of_client in sorted(TRACES.items())
        ]
        assert (schedule.seconds_until_ready(float(time_s)) == 0).tolist() == expected
    assert list(converter.make_rows(4, TRACES[4])) == [(4, 0, 45, 1, 100)]
    assert list(converter.make_rows(5, TRACES[5])) == [(5, 0, 50, 0, 50)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (print, "the pickle names builtins.print"),
        ([1], "expected a dictionary of clients, got a list"),
        ({}, "expected a dictionary of clients"),
        ({"a": TRACES[4]}, "client identifiers must be integers"),
        ({1: 5.0}, "client 1: finish_time must be a number above 0, got None"),
        ({1: {**TRACES[4], "finish_time": 0}}, "client 1: finish_time must be a number above 0, got 0"),
        ({1: {**TRACES[4], "active": [0, float("nan"), 3]}}, "client 1: active must be a list of seconds"),
        ({1: {**TRACES[4], "inactive": None}}, "client 1: inactive must be a list of seconds of at least 0, got None"),
        ({1: {**TRACES[4], "active": [0, 20]}}, "client 1: active has 2 times, but inactive has 3"),
    ],
)
def test_an_invalid_fedscale_trace_is_rejected(
    converter: ModuleType, tmp_path: Path, content: object, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client_behave_trace"
    file.write_bytes(pickle.dumps(content))
    assert converter.main([str(file), str(tmp_path / "ready.parquet")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "ready.parquet").exists()


def test_wrong_arguments_print_the_usage(converter: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert converter.main(["one"]) == converter.main(["one", "table.csv"]) == 2
    assert "usage" in capsys.readouterr().err
