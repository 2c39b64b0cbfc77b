from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fedcohort.dataset.folder import Folder
from fedcohort.errors import DataError, OptionError

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"
CSV = "age,weight,site,label\n31,70.5,north,0\n62,81.0,south,1\n45,66.0,north,2\n"


def folder(path: Path, **options: object) -> Folder:
    plain = Folder(path=str(path), features=None, label="label", client=None, n_classes=None, shape=[], scale=1.0)
    return replace(plain, **options)  # type: ignore[arg-type]


def write(path: Path, part: str, **columns: object) -> None:
    pa.parquet.write_table(pa.table(columns), path / f"{part}.parquet")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    (tmp_path / "train.csv").write_text(CSV)
    (tmp_path / "test.csv").write_text("label,site,weight,age\n1,south,77.0,50\n0,east,60.0,20\n")
    return tmp_path


def test_every_column_of_numbers_is_a_feature_by_name_not_by_place(csv: Path) -> None:
    raw = folder(csv).load(0)
    np.testing.assert_array_equal(raw.train_x, np.float32([[31, 70.5], [62, 81], [45, 66]]))
    np.testing.assert_array_equal(raw.test_x, np.float32([[50, 77], [20, 60]]))
    assert raw.train_x.dtype == np.float32
    assert (raw.train_y.tolist(), raw.test_y.tolist(), raw.n_classes) == ([0, 1, 2], [1, 0], 3)
    assert raw.train_owner is raw.test_owner is None


def test_owners_are_numbered_in_sorted_order(csv: Path) -> None:
    raw = folder(csv, client="site").load(0)
    assert raw.train_owner.tolist() == [1, 2, 1]  # type: ignore[union-attr]
    assert raw.test_owner.tolist() == [2, 0]  # type: ignore[union-attr]


def test_owners_may_be_integers_and_are_no_feature(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path, part, x=[1.0, 2.0, 3.0], who=[70, -5, 70], label=[0, 1, 0])
    raw = folder(tmp_path, client="who").load(0)
    assert raw.train_x.shape == (3, 1)
    assert raw.train_owner.tolist() == raw.test_owner.tolist() == [1, 0, 1]  # type: ignore[union-attr]


def test_a_test_file_may_lack_the_owners(tmp_path: Path) -> None:
    write(tmp_path, "train", x=[1.0, 2.0], who=["b", "a"], label=[0, 1])
    write(tmp_path, "test", x=[1.0], label=[1])
    raw = folder(tmp_path, client="who").load(0)
    assert raw.train_owner.tolist() == [1, 0]  # type: ignore[union-attr]
    assert raw.test_owner is None


def test_one_column_of_lists_with_shape_and_scale(tmp_path: Path) -> None:
    rows = np.arange(24).reshape(2, 12)
    for part in ("train", "test"):
        write(tmp_path, part, pixels=rows.tolist(), label=[4, 1])
    made = folder(tmp_path, features="pixels", shape=[1, 3, 4], scale=255.0, n_classes=6)
    raw = made.load(0)
    np.testing.assert_allclose(raw.train_x, rows.reshape(2, 1, 3, 4) / 255, rtol=1e-6)
    assert raw.n_classes == 6
    with pytest.raises(DataError, match=r"dataset.shape=\[5, 5\] holds 25 values, .*train.parquet has 12"):
        replace(made, shape=[5, 5]).load(0)
    with pytest.raises(DataError, match=r"has no column of numbers besides the label; .*pixels, label"):
        folder(tmp_path).load(0)


def test_errors_name_file_column_and_row(csv: Path) -> None:
    with pytest.raises(DataError, match=r"train.csv has no column 'diagnosis'; it has age, weight, site, label"):
        folder(csv, label="diagnosis").load(0)
    with pytest.raises(DataError, match=r"train.csv has no column 'ward'"):
        folder(csv, client="ward").load(0)
    with pytest.raises(DataError, match=r"train.csv: column 'label', row 2 has label 2; .* at most 1"):
        folder(csv, n_classes=2).load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", ""))
    with pytest.raises(DataError, match=r"test.csv: column 'weight', row 2 is empty"):
        folder(csv).load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", "nan"))
    with pytest.raises(DataError, match=r"test.csv: column 'weight', row 2 "):
        folder(csv).load(0)
    (csv / "test.csv").write_text("age,site,label\n3,north,0\n")
    with pytest.raises(DataError, match=r"test.csv has no column 'weight'; it has age, site, label"):
        folder(csv).load(0)


def test_a_folder_without_test_file_says_so(csv: Path) -> None:
    (csv / "test.csv").unlink()
    with pytest.raises(DataError, match=r"needs test.parquet or test.csv; it holds train.csv"):
        folder(csv).load(0)


@pytest.mark.parametrize(
    ("option", "value"),
    [("shape", [1.5]), ("shape", [0]), ("label", None), ("label", ""), ("path", 3), ("client", 3), ("features", [])],
)
def test_options_out_of_range(tmp_path: Path, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"\b{option} must be .*got"):
        replace(folder(tmp_path), **{option: value})  # type: ignore[arg-type]


def test_real_sensor_data_with_their_subjects() -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    raw = folder(SHARED, features="body_acc_x", client="subject", shape=[1, 128]).load(0)
    assert raw.train_x.shape == (7352, 1, 128)
    assert np.bincount(raw.test_y).tolist() == [496, 471, 420, 491, 532, 537]
    assert np.unique(raw.test_owner).tolist() == [1, 3, 8, 9, 11, 12, 17, 19, 23]
    assert len(np.unique(raw.train_owner)) == 21
