"""Tests of benchmarks/flhetbench.py: device=trace and availability=trace read its tables; bad files are rejected."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmark_scripts import load_script
from config_options import make_component
from fedcohort.rng import Draws

DEVICES: list[Any] = [{"tcp_speed_results": [2000.0, 4000.0]}, {"tcp_speed_results": [8000.0]}]
PHONES: list[Any] = [
    {"Phone Model": "a", "ResNet Latency": 50.0, "ResNet STD": 5.0},
    {"Phone Model": "b", "Vit STD": 1},
]
TIMERS: dict[str, Any] = {
    "37": {"isSuccess": True, "trace_start": 30.0, "trace_end": 130.4, "ready_time": [[40, 60.5], [90, 130.4]]},
    "5": {"isSuccess": False, "trace_start": None, "trace_end": None, "ready_time": []},
}


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    load_script("fedscale_devices", monkeypatch)
    return load_script("flhetbench", monkeypatch)


def convert(
    converter: ModuleType, folder: Path, kind: str, case: object, facts: object, *options: str
) -> tuple[int, Path]:
    files = [folder / "case.json", folder / "facts.json", folder / "table.parquet"]
    for file, content in zip(files, (case, facts), strict=False):
        file.write_text(json.dumps(content))
    return converter.main([kind, str(files[0]), str(files[1]), *options, str(files[2])]), files[2]


def test_a_client_has_the_mean_of_its_measured_speeds(converter: ModuleType, tmp_path: Path) -> None:
    """2000 and 4000 kbit/s: mean 3000, standard deviation 1000, relative 1/3."""
    code, path = convert(converter, tmp_path, "devices", DEVICES, PHONES, "ResNet")
    assert code == 0
    table = pq.read_table(path).to_pydict()
    assert table["down"] == table["up"] == [3000, 8000]
    assert table["link_cv"] == pytest.approx([1 / 3, 0])
    assert (table["seconds"], table["seconds_cv"]) == ([0.05, 0.05], [0.1, 0.1])
    columns = {"seconds_cv": "seconds_cv", "down_cv": "link_cv", "up_cv": "link_cv", "batch": 32, "unit": "kbit/s"}
    make_component("device", "trace", path=str(path), **columns)


def test_a_client_is_ready_as_in_flhetbench(converter: ModuleType, tmp_path: Path) -> None:
    """Period 100 s: at t the trace is at (t - 30) mod 100 + 30, also where an interval passes the end of a period."""
    code, path = convert(converter, tmp_path, "states", ["37", "5", "37"], TIMERS)
    assert code == 0
    trace = make_component("availability", "trace", path=str(path), state="state", period="period_s")
    schedule = trace.schedule(Draws(0, 3))
    for t in np.arange(0.25, 400):
        time_s = (t - 30) % 100 + 30
        is_ready = any(a <= time_s <= b for a, b in TIMERS["37"]["ready_time"])
        assert (schedule.seconds_until_ready(float(t)) == 0).tolist() == [is_ready, False, is_ready], t


@pytest.mark.parametrize(
    ("kind", "case", "facts", "message"),
    [
        ("devices", [], PHONES, "the case must be a list with entries"),
        ("devices", [{"tcp_speed_results": [0]}], PHONES, "and one of them above 0"),
        ("devices", [{"tcp_speed_results": ["fast"]}], PHONES, "client 0: tcp_speed_results must be a list of numbers"),
        ("devices", DEVICES, PHONES[1:], "no phone in training_latency.json has numbers 'ResNet Latency'"),
        ("states", ["7"], TIMERS, "client 0: cached_timers.json has no key '7'"),
        ("states", ["37"], {"37": {**TIMERS["37"], "trace_end": 30}}, "trace_end must be at least one second after"),
        ("states", ["37"], {"37": {**TIMERS["37"], "ready_time": [[1]]}}, "ready_time must hold pairs of seconds"),
    ],
)
def test_invalid_flhetbench_files_are_rejected(
    converter: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    case: object,
    facts: object,
    message: str,
) -> None:
    code, path = convert(converter, tmp_path, kind, case, facts, *(["ResNet"] if kind == "devices" else []))
    assert (code, path.exists()) == (1, False)
    assert message in capsys.readouterr().err
