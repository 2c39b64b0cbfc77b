from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from fedcohort.dataset.folder import Folder
from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.natural import Natural
from fedcohort.startup.split import build
from known import known
from yaml_words import node

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "uci_har"
DEFAULTS: dict[str, Any] = {name: value for name, value in node("dataset", "folder").items() if name != "_target_"}
CSV = "age,weight,site,label\n31,70.5,north,0\n62,81.0,south,1\n45,66.0,north,2\n"


def folder(path: Path, **options: object) -> Folder:
    return Folder(**{**DEFAULTS, "path": str(path), **options})


def write(path: Path, part: str, **columns: object) -> None:
    pa.parquet.write_table(pa.table(columns), path / f"{part}.parquet")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    (tmp_path / "train.csv").write_text(CSV)
    (tmp_path / "test.csv").write_text("label,site,weight,age\n1,south,77.0,50\n0,east,60.0,20\n")
    return tmp_path


def test_every_column_of_numbers_is_a_feature_by_name_not_by_place(csv: Path) -> None:
    raw = folder(csv).load(0)
    np.testing.assert_array_equal(raw.train_x, np.array([[31, 70.5], [62, 81], [45, 66]], np.float32))
    np.testing.assert_array_equal(raw.test_x, np.array([[50, 77], [20, 60]], np.float32))
    assert raw.train_x.dtype == np.float32
    assert (raw.train_y.tolist(), raw.test_y.tolist(), raw.n_classes) == ([0, 1, 2], [1, 0], 3)
    assert raw.train_owner is raw.test_owner is None


def test_owners_are_numbered_in_sorted_order(csv: Path) -> None:
    raw = folder(csv, client="site").load(0)
    assert known(raw.train_owner).tolist() == [1, 2, 1]
    assert known(raw.test_owner).tolist() == [2, 0]


def test_owners_may_be_integers_and_are_no_feature(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path, part, x=[1.0, 2.0, 3.0], who=[70, -5, 70], label=[0, 1, 0])
    raw = folder(tmp_path, client="who").load(0)
    assert raw.train_x.shape == (3, 1)
    assert known(raw.train_owner).tolist() == known(raw.test_owner).tolist() == [1, 0, 1]


def test_a_test_file_may_lack_the_owners(tmp_path: Path) -> None:
    write(tmp_path, "train", x=[1.0, 2.0], who=["b", "a"], label=[0, 1])
    write(tmp_path, "test", x=[1.0], label=[1])
    raw = folder(tmp_path, client="who").load(0)
    assert known(raw.train_owner).tolist() == [1, 0]
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
    with pytest.raises(
        DataError, match=r"^dataset.features: .*no column of numbers besides the label; .*pixels, label"
    ):
        folder(tmp_path).load(0)


def test_errors_name_file_column_and_row(csv: Path) -> None:
    found = r"it has age, weight, site, label$"
    for option, name in (("label", "diagnosis"), ("client", "ward"), ("features", "pixels"), ("leave_out", "row")):
        with pytest.raises(DataError, match=rf"^dataset.{option}: .*train.csv has no column '{name}'; {found}"):
            folder(csv, **{option: [name] if option == "leave_out" else name}).load(0)
    with pytest.raises(
        DataError, match=r"^dataset.label: .*train.csv: column 'label', row 2 has label 2; .* at most 1"
    ):
        folder(csv, n_classes=2).load(0)
    with pytest.raises(DataError, match=r"^dataset.features: .*: column 'site' must hold lists of numbers or images"):
        folder(csv, features="site").load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", ""))
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv: column 'weight', row 2 is empty"):
        folder(csv).load(0)
    (csv / "test.csv").write_text(CSV.replace("66.0", "nan"))
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv: column 'weight', row 2 "):
        folder(csv).load(0)
    (csv / "test.csv").write_text("age,site,label\n3,north,0\n")
    with pytest.raises(DataError, match=r"^dataset.path: .*test.csv has no column 'weight'; it has age, site, label"):
        folder(csv).load(0)


def test_what_was_taken_is_said(csv: Path, tmp_path: Path) -> None:
    assert folder(csv).load(0).inputs == "2: age, weight (left out: site)"
    assert folder(csv, leave_out=["age"]).load(0).inputs == "1: weight (left out: age, site)"
    (lists := tmp_path / "lists").mkdir()
    for part in ("train", "test"):
        write(lists, part, pixels=np.zeros((2, 12)).tolist(), label=[0, 1])
    assert folder(lists, features="pixels", shape=[1, 3, 4]).load(0).inputs == "1 x 3 x 4: pixels"


@pytest.mark.parametrize("written", ["csv", "parquet", "named", "reset", "twice"])
def test_row_numbers_are_no_features(tmp_path: Path, written: str) -> None:
    """However pandas writes them: they differ between train and test, and tell a client's place in the file."""
    whole = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "label": [0, 1, 0, 1]}).sample(frac=1, random_state=0)
    for part, frame in (("train", whole[:2]), ("test", whole[2:])):
        if written in ("csv", "twice"):
            frame.to_csv(tmp_path / f"{part}.csv")
        if written == "twice":
            pd.read_csv(tmp_path / f"{part}.csv").to_csv(tmp_path / f"{part}.csv")
        if written in ("parquet", "named"):
            frame.rename_axis("row" if written == "named" else None).to_parquet(tmp_path / f"{part}.parquet")
        if written == "reset":
            frame.reset_index().to_csv(tmp_path / f"{part}.csv", index=False)
    raw = folder(tmp_path).load(0)
    np.testing.assert_array_equal(raw.train_x, whole["x"].to_numpy(np.float32)[:2, None])
    assert raw.inputs.startswith("1: x (left out: ")


def test_an_index_with_repeats_is_a_feature(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write(tmp_path, part, index=[3, 3, 4], label=[0, 1, 0])
    assert folder(tmp_path).load(0).inputs == "1: index"


def test_labels_that_training_never_has_are_refused_unless_meant(tmp_path: Path) -> None:
    write(tmp_path, "train", x=[1.0, 2.0], label=[0, 1])
    write(tmp_path, "test", x=[1.0, 2.0, 3.0], label=[1, 5, 3])
    with pytest.raises(DataError, match=r"^dataset.label: .*test.parquet: column 'label' has labels .*: 3, 5; "):
        folder(tmp_path).load(0)
    assert folder(tmp_path, n_classes=6).load(0).n_classes == 6


def test_two_columns_of_one_name_are_refused(csv: Path) -> None:
    (csv / "train.csv").write_text("age,age,label\n3,4,0\n")
    with pytest.raises(DataError, match=r"^dataset.path: .*train.csv has 2 columns called 'age'"):
        folder(csv).load(0)


def test_a_folder_without_test_file_says_so(csv: Path) -> None:
    (csv / "test.csv").unlink()
    with pytest.raises(
        DataError, match=r"needs test.parquet or test.csv; it holds train.csv, of which dataset.test_share=0.2"
    ):
        folder(csv).load(0)


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
def test_options_out_of_range(tmp_path: Path, option: str, value: object) -> None:
    with pytest.raises(OptionError, match=rf"\b{option} must be .*got"):
        replace(folder(tmp_path), **{option: value})  # type: ignore[arg-type]


def table(path: Path, n: int = 40, **columns: object) -> None:
    """Two equal parts of n rows with the classes 0, 1, 2 in turn."""
    for part in ("train", "test"):
        write(path, part, **{"x": np.arange(n) / n, "label": np.arange(n) % 3, **columns})


def at(values: Any, row: int, value: object) -> list[Any]:
    """`values` with another one in one place."""
    changed = list(values)
    changed[row] = value
    return changed


THREES, LETTERS = [k % 3 for k in range(40)], ["cat", "dog", "eel", "cat"] * 10


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (at(THREES, 3, 10**6), r"row 3 has label 1000000; .* at least 0 and at most 99999"),
        (at(THREES, 3, 10**12), r"row 3 has label 1000000000000; "),
        (at(THREES, 3, 2**62), r"row 3 has label 4611686018427387904; "),
        (pa.array(at(THREES, 3, 2**64 - 1), pa.uint64()), r"row 3 has label 18446744073709551615; "),
        (at(THREES, 3, -1), r"row 3 has label -1; "),
        (at(THREES, 3, 2019), r"goes up to 2019, and no row has the label 3 ... 2018; .* dataset.n_classes=2020 if"),
        ([2 * c for c in THREES], r"goes up to 4, and no row has the label 1, 3; "),
        ([0] * 40, r"has one label only, 0: there is nothing to learn; set dataset.n_classes=2 if"),
        (at([float(c) for c in THREES], 3, 1.5), r"row 3 has label 1.5; labels are texts, or whole numbers from 0 on"),
        (at([float(c) for c in THREES], 3, float("inf")), r"row 3 has label inf; "),
        (at([float(c) for c in THREES], 3, float("nan")), r"row 3 is empty; mend it, or choose dataset.missing=drop"),
        (at(THREES, 3, None), r"row 3 is empty; "),
        ([None] * 40, r"row 0 is empty; "),
        (at(LETTERS, 3, " "), r"row 3 is empty; "),
        (at([str(c) for c in THREES], 3, "x"), r"row 3 holds 'x' among whole numbers: labels are all of one kind"),
        ([[1]] * 40, r"must hold labels 0, 1, 2, ... or texts, it holds list"),
        ([f"c{k}" for k in range(40)] * 2, None),
    ],
)
def test_what_is_no_label_is_refused_by_row(tmp_path: Path, labels: Any, said: str | None) -> None:
    """Some were a hang, an abort or a traceback before they had a line."""
    n = len(labels)
    table(tmp_path, n, label=labels)
    if said is None:
        assert folder(tmp_path).load(0).n_classes == 40
        return
    with pytest.raises(DataError, match=rf"^dataset.label: .*train.parquet: column 'label',? {said}"):
        folder(tmp_path).load(0)


@pytest.mark.parametrize(
    ("labels", "ids", "names"),
    [
        (LETTERS, [0, 1, 2, 0], ("cat", "dog", "eel")),
        (pa.array(LETTERS).dictionary_encode(), [0, 1, 2, 0], ("cat", "dog", "eel")),
        ([str(c) for c in [10, 2, 1, 0, 3, 4, 5, 6, 7, 8, 9] * 4][:40], [10, 2, 1, 0], ()),
        ([float(c) for c in THREES], [0, 1, 2, 0], ()),
        ([k % 2 == 0 for k in range(40)], [1, 0, 1, 0], ()),
    ],
)
def test_labels_of_other_kinds(tmp_path: Path, labels: Any, ids: list[int], names: tuple[str, ...]) -> None:
    """Texts are numbered in sorted order; texts, fractions and truth values that are whole numbers are those."""
    table(tmp_path, label=labels)
    raw = folder(tmp_path).load(0)
    assert (raw.train_y[:4].tolist(), raw.test_y[:4].tolist(), tuple(raw.class_names)) == (ids, ids, names)


def test_texts_in_one_file_and_numbers_in_the_other(tmp_path: Path) -> None:
    table(tmp_path, label=LETTERS)
    write(tmp_path, "test", x=[1.0], label=[0])
    with pytest.raises(DataError, match=r"test.parquet: column 'label' holds whole numbers, and that of .* texts"):
        folder(tmp_path).load(0)
    write(tmp_path, "test", x=[1.0], label=["fox"])
    with pytest.raises(DataError, match=r"labels that no training row has: fox; .* dataset.n_classes=4 if"):
        folder(tmp_path).load(0)
    raw = folder(tmp_path, n_classes=5).load(0)
    assert (raw.test_y.tolist(), raw.n_classes, raw.class_names) == ([3], 5, ("cat", "dog", "eel", "fox"))


def test_samples_of_train_and_test_have_one_shape(tmp_path: Path) -> None:
    write(tmp_path, "train", v=np.zeros((6, 12)).tolist(), label=[0, 1, 2] * 2)
    write(tmp_path, "test", v=np.zeros((3, 10)).tolist(), label=[0, 1, 2])
    with pytest.raises(DataError, match=r"test.parquet: a sample has the shape \[10\], and one of .*train.* \[12\]"):
        folder(tmp_path, features="v").load(0)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("oops", "holds 'oops', which is no number"),
        ("", "is empty"),
        ("inf", "has a value that is NaN or infinite"),
        ("1e300", "holds 1e\\+300, which float32 can't hold"),
        ("1e400", "has a value that is NaN or infinite"),
    ],
)
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_bad_cell_is_refused_by_row_or_as_you_say(tmp_path: Path, part: str, cell: str, said: str) -> None:
    """One bad cell made its column a text, which was left out with a word in the start-up table alone."""
    rows = [f"{k},{k / 2},{k % 2}" for k in range(8)]
    for name in ("train", "test"):
        lines = at(rows, 5, f"5,{cell},1") if name == part else rows
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    remedy = "; mend it, or choose dataset.missing=drop.* or dataset.missing=mean"
    with pytest.raises(DataError, match=rf"^dataset.path: .*{part}.csv: column 'b', row 5 {said}{remedy}"):
        folder(tmp_path).load(0)
    short = folder(tmp_path, missing="drop").load(0)
    assert (len(short.train_y), len(short.test_y)) == ((7, 8) if part == "train" else (8, 7))
    assert short.inputs == f"2: a, b; 1 of 8 rows of {part}.csv dropped, cells are missing"
    full = folder(tmp_path, missing="mean").load(0)
    mean = np.mean([0, 0.5, 1, 1.5, 2, 3, 3.5]) if part == "train" else np.mean(np.arange(8) / 2)
    assert (full.train_x if part == "train" else full.test_x)[5].tolist() == pytest.approx([5, mean])
    filled = "1 training and 0" if part == "train" else "0 training and 1"
    assert full.inputs == f"2: a, b; {filled} test cells filled with the means of the training rows"


def test_dropping_takes_rows_without_label_owner_or_list_and_errors_name_rows_of_the_file(tmp_path: Path) -> None:
    rows = at(at([[float(k), 1.0] for k in range(40)], 4, None), 5, [1.0, None])
    table(tmp_path, v=rows, who=at(["a", "b"] * 20, 6, None), label=at(THREES, 7, None))
    raw = folder(tmp_path, features="v", client="who", missing="drop").load(0)
    assert raw.train_x[:, 0].tolist() == [k for k in range(40) if k not in (4, 5, 6, 7)]
    table(tmp_path, x=at([0.5] * 40, 3, None), label=at(THREES, 9, -1))
    with pytest.raises(DataError, match=r"row 9 has label -1"):
        folder(tmp_path, missing="drop").load(0)
    table(tmp_path, x=[None] * 40, y=at([1.0] * 40, 0, None))
    assert folder(tmp_path, missing="drop").load(0).inputs.startswith("1: y (left out: x)")
    table(tmp_path, x=[float("nan")] * 40)
    with pytest.raises(DataError, match=r"^dataset.missing=drop: .* has no row without a missing cell"):
        folder(tmp_path, missing="drop").load(0)
    with pytest.raises(DataError, match=r"column 'x' has no number in any training row to take the mean of"):
        folder(tmp_path, missing="mean").load(0)


def test_standardising_knows_the_training_rows_alone(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(3, 2, (2, 40))
    for part, shift in (("train", 0), ("test", 100)):
        write(tmp_path, part, a=x[0] + shift, b=x[1] + shift, same=[7.0] * 40, label=THREES)
    raw = folder(tmp_path, standardise="train").load(0)
    np.testing.assert_allclose(raw.train_x.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(raw.train_x.std(0), [1, 1, 0], rtol=1e-5)
    np.testing.assert_allclose(raw.test_x[:, 0], (x[0] + 100 - x[0].mean()) / x[0].std(), rtol=1e-4)
    assert raw.test_x[:, 2].tolist() == [0] * 40
    assert raw.inputs.endswith("; standardised by mean and deviation of the 40 training rows")
    np.testing.assert_allclose(known(raw.standard), [[*x.mean(1), 7], [*x.std(1), 1]], rtol=1e-5)
    with pytest.raises(OptionError, match=r"^scale must be 1 where standardise=train undoes it, got 255"):
        folder(tmp_path, standardise="train", scale=255)


def test_a_test_part_is_cut_from_each_class_of_each_client(tmp_path: Path) -> None:
    owner = [f"site{k // 3 % 4}" for k in range(400)]
    write(tmp_path, "train", x=np.arange(400.0), who=owner, label=[k % 3 for k in range(400)])
    made = folder(tmp_path, test_share=0.25, client="who", standardise="train")
    raw, again, other = made.load(0), made.load(0), made.load(1)
    assert raw.inputs.startswith("1: x (left out: who); 100 rows cut for the test part; standardised by mean and ")
    assert raw.inputs.endswith("of the 300 training rows")
    pairs = np.stack([known(raw.test_owner), raw.test_y])
    assert set(np.unique(pairs, axis=1, return_counts=True)[1]) <= {8, 9}
    values = np.concatenate([raw.train_x, raw.test_x])[:, 0]
    assert len(np.unique(values)) == 400
    np.testing.assert_array_equal(raw.test_x, again.test_x)
    assert not np.array_equal(raw.test_y, other.test_y) or not np.array_equal(
        known(raw.test_owner), known(other.test_owner)
    )
    write(tmp_path, "train", x=[0.0, 1.0, 2.0, 3.0], label=[0, 1, 0, 1])
    assert len(folder(tmp_path, test_share=0.25).load(0).test_y) == 1
    write(tmp_path, "train", x=[0.0, 1.0], label=[0, 1])
    with pytest.raises(DataError, match=r"^dataset.test_share=0.25: there are too few rows"):
        folder(tmp_path, test_share=0.25).load(0)
    write(tmp_path, "test", x=[1.0], label=[0])
    with pytest.raises(
        DataError, match=r"^dataset.test_share must be null where there is a test part \(.*test.parquet"
    ):
        folder(tmp_path, test_share=0.25).load(0)


def test_a_wide_table_is_read_in_one_look(tmp_path: Path) -> None:
    """Names were looked up in a list for each column: 3,000 columns took longer than anybody waits."""
    table(tmp_path, **dict[str, Any]({f"c{j}": np.zeros(40) for j in range(500)}))
    assert folder(tmp_path).load(0).inputs == "501: x, c0 ... c499"


def test_real_sensor_data_with_their_subjects() -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    raw = folder(SHARED, features="body_acc_x", client="subject", shape=[1, 128]).load(0)
    assert raw.train_x.shape == (7352, 1, 128)
    assert np.bincount(raw.test_y).tolist() == [496, 471, 420, 491, 532, 537]
    assert np.unique(known(raw.test_owner)).tolist() == [1, 3, 8, 9, 11, 12, 17, 19, 23]
    assert len(np.unique(known(raw.train_owner))) == 21


def test_an_official_split_by_subject_leaves_the_test_part_to_the_server() -> None:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/uci_har beside the repository: the real data are shared, not committed")
    har = folder(SHARED, features="body_acc_x", client="subject", test="server", standardise="train")
    kinds: dict[str, Any] = {"seed": 0, "clients": None, "server_val": 0.05, "client_val": 0.1}
    federation = build(har.load(0), Natural(), NoNoise(), **kinds)
    assert (federation.n_clients, len(federation.server_test.y), len(federation.test.y)) == (21, 2947, 0)
    assert not federation.test.offsets.any()
    with pytest.raises(DataError, match=r"no client of the training data has test rows; choose dataset.test=server"):
        build(replace(har, test="clients").load(0), Natural(), NoNoise(), **kinds)
