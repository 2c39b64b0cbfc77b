"""A table of three devices by hand, and the messages about invalid tables."""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from config_options import make_typed
from fedcohort.device.base import Workload
from fedcohort.device.trace import Trace
from fedcohort.errors import DataError, OptionError
from fedcohort.rng import Draws

COLUMNS: dict[str, list[Any]] = {
    "client": [30, 10, 20],
    "seconds": [0.3, 0.1, 0.2],
    "down": [300.0, 100.0, 200.0],
    "up": [3.0, 1.0, 2.0],
    "cv": [0.0, 0.2, 0.1],
}


def write(folder: Path, columns: Mapping[str, Sequence[Any]], suffix: str = ".parquet") -> str:
    file, table = folder / f"devices{suffix}", pa.table(dict(columns))
    if suffix == ".csv":
        pa.csv.write_csv(table, file)
    else:
        pq.write_table(table, file)
    return str(file)


def trace(path: str, **changes: Any) -> Trace:
    return make_typed(Trace, "device", "trace", path=path, **changes)


def job(size: int, epochs: int = 1) -> Workload:
    """Eight samples trained on, two in a forward pass, 6144 bytes down and 3072 up."""
    ones = np.ones(size)
    return Workload(8 * ones / epochs, 2 * ones / epochs, epochs, 6144 * ones, 3072 * ones, epochs=epochs)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_clients_take_the_rows_in_the_order_of_names(tmp_path: Path, suffix: str) -> None:
    """KiB a second: 6144 bytes are 6 KiB, at 100, 200, 300; 3 KiB up at 1, 2, 3. Eight samples at .1, .2, .3 s."""
    device = trace(write(tmp_path, COLUMNS, suffix))
    for timing in (
        device.expect(np.arange(3), job(3), Draws(0, 3)),
        device.sample(np.arange(3), job(3), Draws(0, 3, 1)),
    ):
        assert timing.unit_s == pytest.approx([0.8, 1.6, 2.4])
        assert timing.infer_s == pytest.approx([0.2, 0.4, 0.6])
        assert timing.down_s == pytest.approx([0.06, 0.03, 0.02])
        assert timing.up_s == pytest.approx([3, 1.5, 1])


def test_names_can_be_strings_and_rows_can_be_left_over(tmp_path: Path) -> None:
    device = trace(write(tmp_path, {**COLUMNS, "client": ["c", "a", "b"]}))
    assert device.expect(np.array([1]), job(1), Draws(0, 2)).unit_s == pytest.approx([1.6])


@pytest.mark.parametrize(("unit", "factor"), [("KiB/s", 1.0), ("kB/s", 1.024), ("kbit/s", 8.192), ("bytes/s", 1024.0)])
def test_units_of_speed_are_converted(tmp_path: Path, unit: str, factor: float) -> None:
    """A KiB is 1.024 kB, or 8.192 kbit, or 1024 bytes, and as much slower is a link of as many."""
    timing = trace(write(tmp_path, COLUMNS), unit=unit).expect(np.arange(3), job(3), Draws(0, 3))
    assert timing.down_s == pytest.approx(factor * np.array([0.06, 0.03, 0.02]))
    assert timing.up_s == pytest.approx(factor * np.array([3, 1.5, 1]))


def test_seconds_can_be_per_batch(tmp_path: Path) -> None:
    timing = trace(write(tmp_path, COLUMNS), batch=4).expect(np.arange(3), job(3), Draws(0, 3))
    assert timing.unit_s == pytest.approx([0.2, 0.4, 0.6])


@pytest.mark.parametrize("epochs", [1, 5])
def test_a_unit_is_an_epoch_over_all_samples(tmp_path: Path, epochs: int) -> None:
    """Eight samples are trained on in each epoch, however many epochs a sample-time stands for."""
    timing = trace(write(tmp_path, COLUMNS)).expect(np.arange(3), job(3, epochs), Draws(0, 3))
    assert timing.unit_s == pytest.approx([0.8, 1.6, 2.4])


def test_columns_have_the_names_that_options_give(tmp_path: Path) -> None:
    path = write(tmp_path, {"who": [1, 2], "s": [1.0, 2.0], "d": [4.0, 4.0], "u": [8.0, 8.0]})
    device = trace(path, client="who", seconds="s", down="d", up="u")
    assert device.expect(np.arange(2), job(2), Draws(0, 2)).unit_s == pytest.approx([8, 16])


def test_deviations_are_relative_to_the_means(tmp_path: Path) -> None:
    device = trace(write(tmp_path, COLUMNS), seconds_cv="cv")
    clients = np.arange(3)
    unit = np.stack([device.sample(clients, job(3), Draws(0, 3, t)).unit_s for t in range(2000)])
    mean, cv = np.array([0.8, 1.6, 2.4]), np.array([0.2, 0.1, 0.0])
    assert (np.abs(unit.mean(0) - mean) <= 5 * cv * mean / np.sqrt(2000) + 1e-12).all()
    np.testing.assert_allclose(unit.std(0), cv * mean, rtol=5 / np.sqrt(4000), atol=1e-12)


def test_clients_can_draw_rows(tmp_path: Path) -> None:
    """Each of three devices is drawn for a third of the clients, once a run, by the seed."""
    device = trace(write(tmp_path, COLUMNS), draw=True)
    clients = np.arange(3000)
    unit = device.expect(clients, job(3000), Draws(0, 3000)).unit_s
    kinds, counts = np.unique(np.round(unit, 9), return_counts=True)
    assert kinds.tolist() == [0.8, 1.6, 2.4]
    assert (np.abs(counts - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()
    np.testing.assert_allclose(device.sample(clients, job(3000), Draws(0, 3000, 8)).unit_s, unit)
    assert not np.array_equal(device.expect(clients, job(3000), Draws(1, 3000)).unit_s, unit)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"down": [1.0, -2.0, 3.0]},
            r"device.down: .*: column 'down', row 1 holds -2.0, which must be in \[1e-6, 1e15\], KiB/s",
        ),
        (
            {"up": [1.0, 2.0, 0.0]},
            r"device.up: .*: column 'up', row 2 holds 0.0, which must be in \[1e-6, 1e15\], KiB/s",
        ),
        (
            {"seconds": [0.0, 1.0, 1.0]},
            r"device.seconds: .*, row 0 holds 0.0, which must be in \[1e-12, 1e9\], seconds",
        ),
        ({"seconds": [1.0, 1e308, 1.0]}, r"device.seconds: .*, row 1 holds 1e\+308, which float32 can't hold"),
        ({"seconds": ["1", "1_0", "1"]}, r"device.seconds: .*, row 1 holds '1_0', which is not a number"),
        ({"up": [1.0, 2.0, 5e-324]}, r"device.up: .*, row 2 holds 5e-324, which must be in \[1e-6, 1e15\]"),
        ({"cv": [0.1, 0.1, 1e308]}, r"device.up_cv: .*, row 2 holds 1e\+308, which float32 can't hold"),
        ({"client": ["a", " b", "c"]}, r"device.client: .*: column 'client', row 1 has spaces around its name, ' b'"),
        ({"seconds": [1.0, float("nan"), 1.0]}, r"device.seconds: .*, row 1 has a value that is NaN or infinite"),
        ({"seconds": [1.0, 1.0, float("inf")]}, r"device.seconds: .*, row 2 has a value that is NaN or infinite"),
        ({"seconds": [1.0, None, 1.0]}, r"device.seconds: .*, row 1 is empty"),
        ({"up": ["1", "fast", "3"]}, r"device.up: .*, row 1 holds 'fast', which is not a number"),
        ({"up": [True, True, True]}, r"device.up: .*: column 'up' must hold numbers, but holds bool"),
        (
            {"cv": [0.1, 0.1, -0.1]},
            r"device.up_cv: .*: column 'cv', row 2 holds -0.1, which must be in \[0, 100\], times",
        ),
        ({"client": [4, 5, 4]}, r"device.client: .*: row 2 has the name of row 0"),
        ({"client": [4, None, 5]}, r"device.client: .*, row 1 is empty"),
        ({"client": [4.5, 1.0, 2.0]}, r"device.client: .*, row 0 has name 4.5; names are texts, or whole numbers"),
    ],
)
def test_an_invalid_cell_is_rejected_with_file_row_and_reason(
    tmp_path: Path, changes: Mapping[str, Sequence[Any]], message: str
) -> None:
    path = write(tmp_path, {**COLUMNS, **changes})
    with pytest.raises(DataError, match=message) as caught:
        trace(path, up_cv="cv").expect(np.arange(3), job(3), Draws(0, 3))
    assert path in str(caught.value)


def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    path = write(tmp_path, COLUMNS)
    with pytest.raises(DataError, match=r"device.up_cv: .* has no column 'sd'; it has client, seconds, down, up, cv"):
        trace(path, up_cv="sd").expect(np.arange(3), job(3), Draws(0, 3))


def test_too_few_rows_are_rejected_unless_they_are_drawn(tmp_path: Path) -> None:
    path = write(tmp_path, COLUMNS)
    with pytest.raises(DataError, match=r"has 3 rows, too few for 4 clients: set device.draw=true"):
        trace(path).expect(np.arange(1), job(1), Draws(0, 4))
    assert trace(path, draw=True).expect(np.arange(1), job(1), Draws(0, 4)).unit_s.shape == (1,)


def test_a_missing_client_is_named(tmp_path: Path) -> None:
    """Of clients 0, 1 and 3 the third would have the row of another; two clients don't need it, nor do drawn ones."""
    path = write(tmp_path, {**COLUMNS, "client": [3, 0, 1]})
    with pytest.raises(DataError, match=r"has clients 0 to 1 and then 3: add client 2, or set device.draw"):
        trace(path).expect(np.arange(1), job(1), Draws(0, 3))
    assert trace(path).expect(np.arange(2), job(2), Draws(0, 2)).unit_s.shape == (2,)
    assert trace(path, draw=True).expect(np.arange(3), job(3), Draws(0, 3)).unit_s.shape == (3,)
    ids_of_devices = write(tmp_path, {**COLUMNS, "client": [10, 70, 30]})
    assert trace(ids_of_devices).expect(np.arange(3), job(3), Draws(0, 3)).unit_s.shape == (3,)


def test_files_that_are_no_table_are_rejected(tmp_path: Path) -> None:
    pickled = tmp_path / "devices.pkl"
    pickled.write_bytes(pickle.dumps({1: {"computation": 1.0}}))
    with pytest.raises(OptionError, match=r"path must be a file that ends in .parquet or .csv, got .*devices.pkl"):
        replace(trace("devices.csv"), path=str(pickled))
    renamed_pickle = pickled.rename(tmp_path / "devices.parquet")
    empty = write(tmp_path, {name: column[:0] for name, column in {**COLUMNS, "client": [1.0]}.items()}, ".csv")
    for path, message in [
        (str(renamed_pickle), r"can't be read, it is truncated or no parquet file"),
        (str(tmp_path / "nowhere.csv"), r"there is no such file"),
        (empty, r"has no rows"),
    ]:
        with pytest.raises(DataError, match=message):
            trace(path).expect(np.arange(1), job(1), Draws(0, 1))


def test_two_columns_of_one_name_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "devices.csv").write_text("client,seconds,down,down,up,up\n1,1,1,1,1,1\n")
    with pytest.raises(DataError, match="has 2 columns called 'down'"):
        trace(str(tmp_path / "devices.csv")).expect(np.arange(1), job(1), Draws(0, 1))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"seconds": "client"}, "seconds and client"),
        ({"down": "seconds"}, "down and seconds"),
        ({"up_cv": "up"}, "up_cv and up"),
        ({"seconds_cv": "client"}, "seconds_cv and client"),
    ],
)
def test_two_meanings_of_a_column_are_rejected(options: Mapping[str, str], names: str) -> None:
    with pytest.raises(OptionError, match=f"{names} must be two columns"):
        replace(trace("devices.csv"), **options)  # type: ignore[arg-type]


def test_one_column_can_serve_both_links_and_all_deviations(tmp_path: Path) -> None:
    device = trace(write(tmp_path, COLUMNS), up="down", seconds_cv="cv", down_cv="cv", up_cv="cv")
    timing = device.expect(np.arange(3), job(3), Draws(0, 3))
    np.testing.assert_array_equal(timing.down_s, 2 * timing.up_s)


def test_expected_seconds_of_a_table_by_hand(tmp_path: Path) -> None:
    """Deviations of a mean and a tenth of it at least: E max(.1, 1 + Z) = .1 + .9 Phi(.9) + phi(.9) = 1.1004."""
    device = trace(write(tmp_path, {**COLUMNS, "cv": [1.0, 1.0, 1.0]}), seconds_cv="cv")
    factor = 0.1 + 0.9 * 0.8159399 + 0.2660852
    timing = device.expect(np.arange(3), job(3), Draws(0, 3))
    assert timing.unit_s == pytest.approx(factor * np.array([0.8, 1.6, 2.4]), rel=1e-5)
    assert timing.infer_s == pytest.approx(factor * np.array([0.2, 0.4, 0.6]), rel=1e-5)


class OneDeviation(Draws):
    """Draws whose standard normal numbers are all 1."""

    def generator(self, purpose: str, client: int = 0) -> np.random.Generator:
        class OneGenerator(np.random.Generator):
            def standard_normal(self, size: int) -> np.ndarray:  # type: ignore[override]
                return np.ones(size)

        return OneGenerator(np.random.PCG64(0))


def test_deviations_are_multiples_of_the_means(tmp_path: Path) -> None:
    """One deviation above the mean, a link is 1 + cv times as fast and training takes 1 + cv times as long."""
    device = trace(write(tmp_path, COLUMNS), seconds_cv="cv", down_cv="cv", up_cv="cv")
    timing = device.sample(np.arange(3), job(3), OneDeviation(0, 3, 1))
    factor = np.array([1.2, 1.1, 1.0])
    assert timing.unit_s == pytest.approx(factor * np.array([0.8, 1.6, 2.4]))
    assert timing.down_s == pytest.approx(np.array([0.06, 0.03, 0.02]) / factor)
    assert timing.up_s == pytest.approx(np.array([3, 1.5, 1]) / factor)
