"""Windows of motion by hand, on made-up people and, where they are, on the real ones."""

import re
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from config_options import ROOT, make_component
from fake_hub import COMMIT, serve_folder
from fedcohort.dataset import hub
from fedcohort.dataset.base import Raw
from fedcohort.dataset.uci_har import ACTIVITIES, SIGNALS, UciHar
from fedcohort.errors import DataError, OptionError
from fedcohort.record.overview import list_run_facts
from optional_values import not_none
from run_harness import compose_overrides, run_training

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"
SUBJECTS = {"train": [7, 3, 30, 7, 3, 30] * 4, "test": [4, 12] * 3}


def columns(part: str, **changes: Any) -> dict[str, Any]:
    """Row i of channel c holds 100 i + 10 c at the time 0, and a thousandth more at each time."""
    n = len(SUBJECTS[part])
    rows = 100 * np.arange(n)[:, None] + np.arange(128) / 1000
    signals = {name: list(rows + 10 * channel) for channel, name in enumerate(SIGNALS)}
    labels = {"label": np.arange(n) % 6, "subject": np.array(SUBJECTS[part], np.int32), "segment": np.arange(n)}
    all_columns = {**dict(reversed(signals.items())), **labels, **changes}  # the file's order of columns is not ours
    return {name: column for name, column in all_columns.items() if column is not None}


def write(folder: Path, part: str = "", **changes: Any) -> UciHar:
    """Write both files, with changes in one of them; a column that is None is left out."""
    for file_part in SUBJECTS:
        table = pa.table(columns(file_part, **(changes if file_part == part else {})))
        pa.parquet.write_table(table, folder / f"{file_part}.parquet")
    return UciHar(str(folder), None, None)


def test_channels_keep_their_order_and_values(tmp_path: Path) -> None:
    raw = write(tmp_path).load(0)
    assert raw.train_x.shape == (24, 9, 128)
    assert raw.train_x.dtype == np.float32
    rows, channels, times = np.arange(24)[:, None, None], np.arange(9)[:, None], np.arange(128)
    np.testing.assert_allclose(raw.train_x, 100 * rows + 10 * channels + times / 1000, rtol=1e-6)
    np.testing.assert_array_equal(raw.test_x, raw.train_x[:6])
    assert SIGNALS[:4] == ("total_acc_x", "total_acc_y", "total_acc_z", "body_acc_x")
    assert SIGNALS[4:] == ("body_acc_y", "body_acc_z", "body_gyro_x", "body_gyro_y", "body_gyro_z")
    assert raw.inputs.startswith(f"9 x 128: {', '.join(SIGNALS)}, not normalised;")
    assert "; 24 training windows, 7,328 fewer than the original's 7,352; 6 test windows, 2,941 fewer" in raw.inputs


def test_labels_are_activities_and_clients_are_people(tmp_path: Path) -> None:
    raw = write(tmp_path).load(0)
    assert raw.test_y.tolist() == [0, 1, 2, 3, 4, 5]
    assert (raw.n_classes, tuple(raw.class_names)) == (6, ACTIVITIES)
    assert not_none(raw.train_owner).tolist() == [1, 0, 2, 1, 0, 2] * 4, "numbered in the order of their ids"
    assert not_none(raw.train_owner).dtype == np.int64
    assert raw.test_owner is None
    assert raw.pooled_test
    assert raw.single_use, "the inputs are held once"


def test_activity_labels_may_be_names(tmp_path: Path) -> None:
    raw = write(tmp_path, "test", label=list(reversed(ACTIVITIES))).load(0)
    assert raw.test_y.tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("part", "changes", "refusal"),
    [
        ("train", {"body_acc_y": None}, r"train.parquet has no column 'body_acc_y'; it has body_gyro_z, "),
        ("test", {"subject": None}, r"test.parquet has no column 'subject'; it has"),
        ("test", {"label": None}, r"test.parquet has no column 'label'; it has"),
        (
            "train",
            {"label": np.arange(24) % 6 + 1},
            r"column 'label', row 5 has label 6; labels must be whole, at least 0 and at most 5",
        ),
        (
            "test",
            {"body_gyro_x": [[0.0] * 64] * 6},
            r"test.parquet: column 'body_gyro_x' must hold lists of 128 numbers, but holds \(64,\)",
        ),
        (
            "train",
            {"total_acc_z": [[0.0] * 128] * 23 + [[0.0] * 127]},
            r"train.parquet: column 'total_acc_z', row 23 has a list of another length than the first",
        ),
        (
            "train",
            {"total_acc_z": np.zeros(24)},
            r"'total_acc_z' must hold lists of numbers or images, but holds double",
        ),
        (
            "train",
            {"body_acc_x": [[0.0] * 128] * 5 + [[float("nan")] + [0.0] * 127] * 19},
            r"train.parquet: column 'body_acc_x', row 5 has a value that is missing, NaN or infinite",
        ),
        ("test", {"label": [0, 1, 2, 3, 4, 6]}, r"test.parquet: column 'label', row 5 has label 6; .* at most 5"),
        (
            "test",
            {"subject": [4, 12, 30, 4, 12, 4]},
            r"test.parquet: column 'subject', row 2 is of subject 30, which .*train.parquet has, too",
        ),
        ("train", {"subject": ["a"] * 24}, r"column 'subject' mixes texts and numbers with that of .*train.parquet"),
        ("train", {"subject": [None, *range(40, 63)]}, r"train.parquet: column 'subject', row 0 is empty"),
    ],
)
def test_invalid_har_tables_are_rejected_with_file_and_column(
    tmp_path: Path, part: str, changes: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(DataError, match=rf"^dataset.path: .*{refusal}"):
        write(tmp_path, part, **changes).load(0)


def test_without_path_or_hub_the_error_names_the_source_of_the_data() -> None:
    with pytest.raises(DataError, match=r"dataset=uci_har needs dataset.path, .*docs/data.md .* or dataset.hub, "):
        make_component("dataset", "uci_har").load(0)
    with pytest.raises(OptionError, match="hub must be a text that is not empty or null"):
        UciHar(None, "", None)
    with pytest.raises(OptionError, match="path must be a text that is not empty or null"):
        UciHar("", None, None)


def test_the_hub_option_loads_uci_har_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    parts = datasets.DatasetDict({part: datasets.Dataset.from_dict(columns(part)) for part in SUBJECTS})

    def load(name: str) -> datasets.DatasetDict:
        requests.append(name)
        return parts

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(hub, "check_network", lambda: "")
    raw = UciHar(None, "somebody/har", None).load(0)
    assert requests == ["somebody/har"]
    assert (raw.train_x.shape, raw.test_x.shape) == ((24, 9, 128), (6, 9, 128))


def test_a_run_on_hub_data_is_tagged_with_their_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    serve_folder(monkeypatch, tmp_path)
    overrides = ("dataset=uci_har", "dataset.hub=somebody/har:all@main", "clients=null", "cohort=2", "rounds=1")
    run = run_training(tmp_path / "logs", *overrides)
    assert run.info.tags["hub"] == f"somebody/har:all@{COMMIT}"
    assert dict(list_run_facts(run.info))["hub"] == run.info.tags["hub"]
    assert "hub" not in run_training(tmp_path / "logs", *overrides, f"dataset.path={tmp_path}").info.tags


def test_clients_are_training_people_and_the_test_set_holds_other_people(tmp_path: Path) -> None:
    write(tmp_path)
    overrides = (
        "dataset=uci_har",
        f"dataset.path={tmp_path}",
        "clients=null",
        "cohort=2",
        "rounds=1",
        "client.lr=1e-6",
    )
    assert compose_overrides(*overrides).choices["heterogeneity"] == "natural"
    run = run_training(tmp_path / "logs", *overrides)
    assert (len(run.info.n_train), run.info.n_train.sum()) == (3, 24 - 1 - 3 * 2), "server_val, two samples each"
    assert "test/acc" in run.last.metrics
    assert not [name for name in run.last.metrics if name.startswith("clients/acc")]
    assert run.info.tags["inputs"].endswith("; only the server holds test rows: no metrics clients/acc_*")


def test_the_documented_conversion_writes_the_uci_har_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UCI's archive has a text file for each signal, a line for each window."""
    for part in SUBJECTS:
        folder = tmp_path / "UCI HAR Dataset" / part
        (folder / "Inertial Signals").mkdir(parents=True)
        part_columns = columns(part)
        for name in SIGNALS:
            np.savetxt(folder / "Inertial Signals" / f"{name}_{part}.txt", np.stack(part_columns[name]))
        np.savetxt(folder / f"y_{part}.txt", part_columns["label"] + 1, fmt="%d")
        np.savetxt(folder / f"subject_{part}.txt", part_columns["subject"], fmt="%d")
    section = (ROOT / "docs" / "data.md").read_text().partition("## UCI-HAR")[2]
    code = re.findall(r"<<'PY'\n(.*?)\nPY\n", section, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    (tmp_path / "direct").mkdir()
    data, expected = UciHar("har", None, None).load(0), write(tmp_path / "direct").load(0)
    np.testing.assert_allclose(data.train_x, expected.train_x, rtol=1e-6)
    np.testing.assert_allclose(data.test_x, expected.test_x, rtol=1e-6)
    for name in ("train_y", "test_y", "train_owner"):
        np.testing.assert_array_equal(getattr(data, name), getattr(expected, name))


@pytest.fixture(scope="module")
def real() -> Raw:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    return UciHar(str(SHARED), None, None).load(0)


def test_the_real_uci_har_files_have_the_documented_sizes(real: Raw) -> None:
    assert (real.train_x.shape, real.test_x.shape) == ((7352, 9, 128), (2947, 9, 128))
    assert np.bincount(real.train_y).tolist() == [1226, 1073, 986, 1286, 1374, 1407]
    assert np.bincount(real.test_y).tolist() == [496, 471, 420, 491, 532, 537]
    sizes = np.bincount(not_none(real.train_owner))
    assert (len(sizes), sizes.min(), sizes.max()) == (21, 281, 409)


def test_the_real_signals_have_gravity_in_the_first_channel(real: Raw) -> None:
    """A phone at the waist measures gravity along x unless its owner lies; body acceleration has a mean of 0."""
    means = real.train_x.mean((0, 2), dtype=np.float64)
    assert means[0] == pytest.approx(0.81, abs=0.01)
    assert np.abs(means[3:]).max() < 0.05
    is_lying = real.train_y == ACTIVITIES.index("LAYING")
    assert real.train_x[is_lying, 0].mean() < 0.4 < 0.8 < real.train_x[~is_lying, 0].mean()
    is_walking = real.train_y < 3
    assert real.train_x[is_walking, 3:6].std() > 5 * real.train_x[~is_walking, 3:6].std()
