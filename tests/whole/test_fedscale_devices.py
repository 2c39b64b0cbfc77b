"""FedScale's pickle becomes a table that device=trace reads, and a pickle that would call something is refused."""

import collections
import os
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedcohort.device.base import Workload
from fedcohort.rng import Draws
from fedcohort.startup import components
from run_harness import compose_words
from scripts import load_script
from yaml_words import ROOT, make

FILE = ROOT / "benchmarks" / "fedscale_devices.py"
CAPACITY = {
    7: {"computation": 40.0, "communication": 8000},
    2: {"computation": 100, "communication": 4000.0},
}


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("fedscale_devices", monkeypatch)


class Calls:
    """Unpickled, it makes the folder of its name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_seconds_of_training_and_kilobits(converter: ModuleType, tmp_path: Path, protocol: int) -> None:
    """100 ms of inference are .3 s of training; 4000 kbit/s bring a million bytes, 8000 kbit, in 2 s."""
    source, target = tmp_path / "client_device_capacity", tmp_path / "devices.parquet"
    source.write_bytes(pickle.dumps(CAPACITY, protocol))
    assert converter.main([str(source), str(target)]) == 0
    device = make("device", "trace", path=str(target), unit="kbit/s")
    one = np.ones(2)
    timing = device.expect(np.arange(2), Workload(one, one, 1, 1e6 * one, 5e5 * one), Draws(0, 2))
    assert timing.unit == pytest.approx([0.3, 0.12])  # client 2 of theirs comes before client 7
    assert timing.down == pytest.approx([2, 1])
    assert timing.up == pytest.approx([1, 0.5])


def test_the_word_reads_the_table_as_fedscale_does(converter: ModuleType, tmp_path: Path) -> None:
    """3 x 20 samples x 100 ms / 1000 + 8 x (1e6 + 5e5) bits / 4000 kbit/s are 6 + 3 s; for the other 2.4 + 1.5 s."""
    target = tmp_path / "devices.parquet"
    pq.write_table(converter.make_table(CAPACITY), target)
    config = compose_words("device=fedscale", f"device.path={target}")
    device = components.make(config, "device")
    one = np.ones(400)
    seconds = device.expect(np.arange(400), Workload(20 * one, 0 * one, 1, 1e6 * one, 5e5 * one), Draws(0, 400)).finish(
        1
    )
    assert set(seconds.round(9).tolist()) == {9.0, 3.9}
    assert abs((seconds > 5).sum() - 200) < 5 * np.sqrt(400 / 4)  # either device is drawn for half of the clients


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_call_something_is_refused(
    converter: ModuleType, tmp_path: Path, protocol: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source, made = tmp_path / "client_device_capacity", tmp_path / "made"
    source.write_bytes(pickle.dumps({**CAPACITY, 9: Calls(made)}, protocol))
    assert converter.main([str(source), str(tmp_path / "devices.parquet")]) == 1
    said = capsys.readouterr().err
    assert str(source) in said
    assert "mkdir, and may hold nothing but containers, numbers and texts" in said
    assert not made.exists()
    assert not (tmp_path / "devices.parquet").exists()
    pickle.loads(source.read_bytes())  # the file does what it is refused for
    assert made.is_dir()


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (collections.OrderedDict(CAPACITY), "it wants collections.OrderedDict"),
        (np.float64(1.0), "it wants numpy"),
        ([1, 2], "it holds no clients, but a list"),
        ({}, "it holds no clients"),
        ({"a": CAPACITY[2]}, "its clients must be integers"),
        ({1: {"computation": 0, "communication": 1}}, "client 1 must have a computation and a communication above 0"),
        ({1: {"computation": 1, "communication": float("nan")}}, "it has 1 and nan"),
        ({1: {"computation": True, "communication": 1}}, "it has True and 1"),
        ({1: {"communication": 1}}, "it has None and 1"),
        ({1: 5.0}, "it has None and None"),
    ],
)
def test_what_is_no_table_of_devices_is_refused(converter: ModuleType, tmp_path: Path, held: object, said: str) -> None:
    file = tmp_path / "client_device_capacity"
    file.write_bytes(pickle.dumps(held))
    with pytest.raises(converter.Refused, match=said):
        converter.make_table(converter.unpickle(file))


def test_a_file_that_is_no_pickle(converter: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client_device_capacity"
    for content in (b"", b"client,seconds\n1,2\n", pickle.dumps(CAPACITY)[:-9], b"Pname\n."):
        file.write_bytes(content)
        assert converter.main([str(file), str(tmp_path / "devices.parquet")]) == 1
    assert converter.main([str(tmp_path / "nowhere"), str(tmp_path / "devices.parquet")]) == 1
    assert converter.main([str(file)]) == converter.main([str(file), str(tmp_path / "devices.csv")]) == 2
    assert "usage" in capsys.readouterr().err
