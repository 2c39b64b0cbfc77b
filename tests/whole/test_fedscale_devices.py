"""Tests of benchmarks/fedscale_devices.py: device=trace reads its table, and unsafe pickles are rejected."""

import collections
import os
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmark_scripts import load_script
from config_options import ROOT, make_component
from fedcohort.device.base import Workload
from fedcohort.rng import Draws
from fedcohort.startup import components
from run_harness import compose_overrides

FILE = ROOT / "benchmarks" / "fedscale_devices.py"
CAPACITY = {
    7: {"computation": 40.0, "communication": 8000},
    2: {"computation": 100, "communication": 4000.0},
}


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("fedscale_devices", monkeypatch)


class CreatesFolder:
    """An object whose unpickling creates a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_fedscale_inference_times_and_link_speeds_are_converted(
    converter: ModuleType, tmp_path: Path, protocol: int
) -> None:
    """100 ms of inference are 0.3 s of training; at 4000 kbit/s a million bytes (8000 kbit) take 2 s."""
    source, target = tmp_path / "client_device_capacity", tmp_path / "devices.parquet"
    source.write_bytes(pickle.dumps(CAPACITY, protocol))
    assert converter.main([str(source), str(target)]) == 0
    device = make_component("device", "trace", path=str(target), unit="kbit/s")
    ones = np.ones(2)
    timing = device.expect(np.arange(2), Workload(ones, ones, 1, 1e6 * ones, 5e5 * ones), Draws(0, 2))
    assert timing.unit_s == pytest.approx([0.3, 0.12])  # clients are sorted: client 2 before client 7
    assert timing.down_s == pytest.approx([2, 1])
    assert timing.up_s == pytest.approx([1, 0.5])


def test_device_fedscale_computes_fedscales_round_times(converter: ModuleType, tmp_path: Path) -> None:
    """3 x 20 samples x 100 ms / 1000 + 8 x (1e6 + 5e5) bits / 4000 kbit/s = 6 + 3 s. The second one takes 3.9 s."""
    target = tmp_path / "devices.parquet"
    pq.write_table(converter.make_table(CAPACITY), target)
    config = compose_overrides("device=fedscale", f"device.path={target}")
    device = components.make_component(config, "device")
    ones = np.ones(400)
    seconds = device.expect(
        np.arange(400), Workload(20 * ones, 0 * ones, 1, 1e6 * ones, 5e5 * ones), Draws(0, 400)
    ).finish_s(1)
    assert set(seconds.round(9).tolist()) == {9.0, 3.9}
    assert abs((seconds > 5).sum() - 200) < 5 * np.sqrt(400 / 4)  # each device is drawn for about half of the clients


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_call_a_function_is_rejected(
    converter: ModuleType, tmp_path: Path, protocol: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source, folder = tmp_path / "client_device_capacity", tmp_path / "made"
    source.write_bytes(pickle.dumps({**CAPACITY, 9: CreatesFolder(folder)}, protocol))
    assert converter.main([str(source), str(tmp_path / "devices.parquet")]) == 1
    message = capsys.readouterr().err
    assert str(source) in message
    assert "mkdir, but only containers, numbers and strings are allowed" in message
    assert not folder.exists()
    assert not (tmp_path / "devices.parquet").exists()
    pickle.loads(source.read_bytes())  # without the check, the pickle does create the folder
    assert folder.is_dir()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (collections.OrderedDict(CAPACITY), "the pickle names collections.OrderedDict"),
        (np.float64(1.0), "the pickle names numpy"),
        ([1, 2], "expected a dictionary of clients, got a list"),
        ({}, "expected a dictionary of clients"),
        ({"a": CAPACITY[2]}, "client identifiers must be integers"),
        (
            {1: {"computation": 0, "communication": 1}},
            "client 1: computation and communication must be numbers above 0",
        ),
        ({1: {"computation": 1, "communication": float("nan")}}, "got 1 and nan"),
        ({1: {"computation": True, "communication": 1}}, "got True and 1"),
        ({1: {"communication": 1}}, "got None and 1"),
        ({1: 5.0}, "got None and None"),
    ],
)
def test_invalid_fedscale_device_data_are_rejected(
    converter: ModuleType, tmp_path: Path, content: object, message: str
) -> None:
    file = tmp_path / "client_device_capacity"
    file.write_bytes(pickle.dumps(content))
    with pytest.raises(converter.InvalidFile, match=message):
        converter.make_table(converter.unpickle(file))


def test_damaged_files_and_wrong_arguments_are_rejected(
    converter: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client_device_capacity"
    for content in (b"", b"client,seconds\n1,2\n", pickle.dumps(CAPACITY)[:-9], b"Pname\n."):
        file.write_bytes(content)
        assert converter.main([str(file), str(tmp_path / "devices.parquet")]) == 1
    assert converter.main([str(tmp_path / "nowhere"), str(tmp_path / "devices.parquet")]) == 1
    assert converter.main([str(file)]) == converter.main([str(file), str(tmp_path / "devices.csv")]) == 2
    assert "usage" in capsys.readouterr().err
