"""Which columns of a folder's tables are inputs, labels and owners."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.natural import Natural
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from folder_tables import make_folder_dataset, write_both_parts, write_part
from optional_values import not_none

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"
CSV = "age,weight,site,label\n31,70.5,north,0\n62,81.0,south,1\n45,66.0,north,2\n"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    (tmp_path / "train.csv").write_text(CSV)
    (tmp_path / "test.csv").write_text("label,site,weight,age\n1,south,77.0,50\n0,east,60.0,20\n")
    return tmp_path


def test_numeric_columns_are_features_matched_by_name(csv: Path) -> None:
    raw = make_folder_dataset(csv).load(0)
    np.testing.assert_array_equal(raw.train_x, np.array([[31, 70.5], [62, 81], [45, 66]], np.float32))
    np.testing.assert_array_equal(raw.test_x, np.array([[50, 77], [20, 60]], np.float32))
    assert raw.train_x.dtype == np.float32
    assert (raw.train_y.tolist(), raw.test_y.tolist(), raw.n_classes) == ([0, 1, 2], [1, 0], 3)
    assert raw.train_owner is raw.test_owner is None


def test_client_ids_are_numbered_in_sorted_order(csv: Path) -> None:
    raw = make_folder_dataset(csv, client="site").load(0)
    assert not_none(raw.train_owner).tolist() == [1, 2, 1]
    assert not_none(raw.test_owner).tolist() == [2, 0]


def test_an_integer_client_column_is_not_a_feature(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_part(tmp_path, part, x=[1.0, 2.0, 3.0], who=[70, -5, 70], label=[0, 1, 0])
    raw = make_folder_dataset(tmp_path, client="who").load(0)
    assert raw.train_x.shape == (3, 1)
    assert not_none(raw.train_owner).tolist() == not_none(raw.test_owner).tolist() == [1, 0, 1]


def test_the_test_file_may_lack_the_client_column(tmp_path: Path) -> None:
    write_part(tmp_path, "train", x=[1.0, 2.0], who=["b", "a"], label=[0, 1])
    write_part(tmp_path, "test", x=[1.0], label=[1])
    raw = make_folder_dataset(tmp_path, client="who").load(0)
    assert not_none(raw.train_owner).tolist() == [1, 0]
    assert raw.test_owner is None


def test_a_list_column_is_reshaped_and_scaled(tmp_path: Path) -> None:
    rows = np.arange(24).reshape(2, 12)
    for part in ("train", "test"):
        write_part(tmp_path, part, pixels=rows.tolist(), label=[4, 1])
    dataset = make_folder_dataset(tmp_path, features="pixels", shape=[1, 3, 4], scale=255.0, n_classes=6)
    raw = dataset.load(0)
    np.testing.assert_allclose(raw.train_x, rows.reshape(2, 1, 3, 4) / 255, rtol=1e-6)
    assert raw.n_classes == 6
    with pytest.raises(
        DataError, match=r"dataset.shape=\[5, 5\] must have 12 values, as .*train.parquet has, but has 25"
    ):
        replace(dataset, shape=[5, 5]).load(0)
    with pytest.raises(
        DataError, match=r"dataset.features: .*no column of numbers besides the label. Its other columns: pixels"
    ):
        make_folder_dataset(tmp_path).load(0)


def test_errors_name_file_column_and_row(csv: Path) -> None:
    column_list = r"it has age, weight, site, label$"
    for option, name in (("label", "diagnosis"), ("client", "ward"), ("features", "pixels"), ("leave_out", "row")):
        with pytest.raises(DataError, match=rf"^dataset.{option}: .*train.csv has no column '{name}'; {column_list}"):
            make_folder_dataset(csv, **{option: [name] if option == "leave_out" else name}).load(0)
    with pytest.raises(
        DataError, match=r"^dataset.label: .*train.csv: column 'label', row 2 has label 2; .* at most 1"
    ):
        make_folder_dataset(csv, n_classes=2).load(0)
    with pytest.raises(DataError, match=r"dataset.features: .*: column 'site' must hold lists of numbers or images"):
        make_folder_dataset(csv, features="site").load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", ""))
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv: column 'weight', row 2 is empty"):
        make_folder_dataset(csv).load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", "nan"))
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv: column 'weight', row 2 "):
        make_folder_dataset(csv).load(0)
    (csv / "test.csv").write_text("age,site,label\n3,north,0\n")
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv has no column 'weight'; it has age, site, label"):
        make_folder_dataset(csv).load(0)


def test_the_chosen_columns_are_reported(csv: Path, tmp_path: Path) -> None:
    assert make_folder_dataset(csv).load(0).inputs == "2: age, weight (left out: site)"
    assert make_folder_dataset(csv, leave_out=["age"]).load(0).inputs == "1: weight (left out: age, site)"
    (lists := tmp_path / "lists").mkdir()
    for part in ("train", "test"):
        write_part(lists, part, pixels=np.eye(2, 12).tolist(), label=[0, 1])
    assert make_folder_dataset(lists, features="pixels", shape=[1, 3, 4]).load(0).inputs == "1 x 3 x 4: pixels"


@pytest.mark.parametrize("layout", ["csv", "parquet", "named", "reset", "twice"])
def test_row_number_columns_are_not_features(tmp_path: Path, layout: str) -> None:
    """However pandas writes them: they differ between train and test, and tell a client's place in the file."""
    all_rows = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "label": [0, 1, 0, 1]}).sample(frac=1, random_state=0)
    for part, frame in (("train", all_rows[:2]), ("test", all_rows[2:])):
        if layout in ("csv", "twice"):
            frame.to_csv(tmp_path / f"{part}.csv")
        if layout == "twice":
            pd.read_csv(tmp_path / f"{part}.csv").to_csv(tmp_path / f"{part}.csv")
        if layout in ("parquet", "named"):
            frame.rename_axis("row" if layout == "named" else None).to_parquet(tmp_path / f"{part}.parquet")
        if layout == "reset":
            frame.reset_index().to_csv(tmp_path / f"{part}.csv", index=False)
    raw = make_folder_dataset(tmp_path).load(0)
    np.testing.assert_array_equal(raw.train_x, all_rows["x"].to_numpy(np.float32)[:2, None])
    assert raw.inputs.startswith("1: x (left out: ")


def test_an_index_column_with_repeated_values_is_a_feature(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_part(tmp_path, part, index=[3, 3, 4], label=[0, 1, 0])
    assert make_folder_dataset(tmp_path).load(0).inputs == "1: index"


def test_test_labels_absent_from_training_need_n_classes(tmp_path: Path) -> None:
    write_part(tmp_path, "train", x=[1.0, 2.0], label=[0, 1])
    write_part(tmp_path, "test", x=[1.0, 2.0, 3.0], label=[1, 5, 3])
    with pytest.raises(DataError, match=r"^dataset.label: .*test.parquet: column 'label' has labels .*: 3, 5; "):
        make_folder_dataset(tmp_path).load(0)
    assert make_folder_dataset(tmp_path, n_classes=6).load(0).n_classes == 6


def test_duplicate_column_names_are_rejected(csv: Path) -> None:
    (csv / "train.csv").write_text("age,age,label\n3,4,0\n")
    with pytest.raises(DataError, match=r"^dataset.path: .*train.csv has 2 columns called 'age'"):
        make_folder_dataset(csv).load(0)
    (csv / "train.csv").unlink()
    table = pa.Table.from_arrays([pa.array([3]), pa.array([4]), pa.array([0])], ["age", "age", "label"])
    pq.write_table(table, csv / "train.parquet")
    with pytest.raises(DataError, match=r"^dataset.path: .*train.parquet has 2 columns called 'age'"):
        make_folder_dataset(csv).load(0)


def test_a_folder_without_a_test_file_is_rejected_with_a_remedy(csv: Path) -> None:
    (csv / "test.csv").unlink()
    with pytest.raises(
        DataError,
        match=r"has no test table: dataset.test_share=0.2 cuts a fifth of train.csv, or write test.parquet or test.csv",
    ):
        make_folder_dataset(csv).load(0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("shape", [1.5]),
        ("shape", [0]),
        ("label", None),
        ("label", ""),
        ("path", 3),
        ("client", 3),
        ("features", []),
        ("leave_out", "x"),
        ("leave_out", [3]),
        ("leave_out", None),
        ("client", "label"),
        ("features", "label"),
        ("leave_out", ["label"]),
        ("n_classes", 10**12),
        ("standardise", "test"),
        ("missing", "zero"),
        ("test_share", 0.9),
        ("test", "nobody"),
    ],
)
def test_dataset_folder_options_out_of_range_are_rejected(tmp_path: Path, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"\b{option} (and label )?must be .*got"):
        replace(make_folder_dataset(tmp_path), **{option: value})  # type: ignore[arg-type]


def test_samples_of_train_and_test_must_have_equal_shapes(tmp_path: Path) -> None:
    write_part(tmp_path, "train", v=np.zeros((6, 12)).tolist(), label=[0, 1, 2] * 2)
    write_part(tmp_path, "test", v=np.zeros((3, 10)).tolist(), label=[0, 1, 2])
    with pytest.raises(DataError, match=r"test.parquet: a sample has the shape \[10\], but one of .*train.* \[12\]"):
        make_folder_dataset(tmp_path, features="v").load(0)


def test_a_table_of_500_columns_is_read(tmp_path: Path) -> None:
    """A table of 3,000 columns is read quickly: names are not looked up in a list for each column."""
    write_both_parts(tmp_path, **dict[str, Any]({f"c{j}": np.zeros(40) for j in range(500)}))
    assert make_folder_dataset(tmp_path).load(0).inputs == "501: x, c0 ... c499"


def test_real_sensor_data_have_their_subjects_as_clients() -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    raw = make_folder_dataset(SHARED, features="body_acc_x", client="subject", shape=[1, 128]).load(0)
    assert raw.train_x.shape == (7352, 1, 128)
    assert np.bincount(raw.test_y).tolist() == [496, 471, 420, 491, 532, 537]
    assert np.unique(not_none(raw.test_owner)).tolist() == [1, 3, 8, 9, 11, 12, 17, 19, 23]
    assert len(np.unique(not_none(raw.train_owner))) == 21


def test_an_official_split_by_subject_leaves_the_test_part_to_the_server() -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    har = make_folder_dataset(SHARED, features="body_acc_x", client="subject", test="server", standardise="train")
    kinds: dict[str, Any] = {"seed": 0, "clients": None, "server_val": 0.05, "client_val": 0.1}
    federation = build_federation(har.load(0), SplitOptions(Natural(), NoNoise(), **kinds))
    assert (federation.n_clients, len(federation.server_test.y), len(federation.test.y)) == (21, 2947, 0)
    assert not federation.test.offsets.any()
    with pytest.raises(DataError, match=r"no client of the training data has test rows; choose dataset.test=server"):
        build_federation(replace(har, test="clients").load(0), SplitOptions(Natural(), NoNoise(), **kinds))
