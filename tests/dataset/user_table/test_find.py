"""Which files of a path are the tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fedcohort.errors import DataError
from folder_tables import make_folder_dataset

ROWS = "x,label\n" + "".join(f"{k / 40},{k % 2}\n" for k in range(40))


def parts(path: Path, names: list[str]) -> None:
    path.mkdir()
    for number, name in enumerate(names):
        k = np.arange(20 * number, 20 * number + 20)
        pq.write_table(pa.table({"x": k / 40, "label": k % 2}), path / name)
    (path / "_SUCCESS").write_text("")


@pytest.mark.parametrize("name", ["patients.csv", "patients.tsv", "patients.csv.gz"])
def test_a_single_table_of_any_name_is_the_training_table(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(ROWS)
    for path in (tmp_path, tmp_path / name):
        raw = make_folder_dataset(path, test_share=0.25).load(0)
        assert len(raw.train_y) == 30
        assert f"; {name} is the training table" in raw.inputs


def test_part_files_of_one_table_are_read_in_order_and_errors_name_the_part(tmp_path: Path) -> None:
    parts(tmp_path / "whole", ["part-00000-abc.snappy.parquet", "part-00001-abc.snappy.parquet"])
    parts(tmp_path / "train.parquet", ["part.0.parquet", "part.1.parquet"])
    for path in (tmp_path / "whole", tmp_path):
        raw = make_folder_dataset(path, test_share=0.25).load(0)
        assert len(np.unique(np.concatenate([raw.train_x, raw.test_x]))) == 40
    table = pa.table({"x": [0.5, None], "label": [0, 1]})
    pq.write_table(table, tmp_path / "train.parquet" / "part.1.parquet")
    with pytest.raises(DataError, match=r"train.parquet/part.1.parquet: column 'x', row 1 is empty"):
        make_folder_dataset(tmp_path, test_share=0.25).load(0)
    pq.write_table(table.rename_columns(["z", "label"]), tmp_path / "train.parquet" / "part.1.parquet")
    with pytest.raises(DataError, match=r"part.1.parquet has other columns than part.0.parquet: x, z"):
        make_folder_dataset(tmp_path, test_share=0.25).load(0)


def test_folders_of_a_partitioned_table_become_a_column(tmp_path: Path) -> None:
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        table = pa.table({"x": np.arange(20) + year, "label": np.arange(20) % 2})
        pq.write_table(table, tmp_path / f"year={year}" / "a-0.parquet")
    raw = make_folder_dataset(tmp_path, test_share=0.25).load(0)
    assert raw.columns == ("x", "year")
    assert sorted({*raw.train_x[:, 1], *raw.test_x[:, 1]}) == [2020, 2021]
    pq.write_table(table.set_column(0, "x", pa.array([None] * 20, pa.int64())), tmp_path / "year=2021" / "a-0.parquet")
    with pytest.raises(DataError, match=r"/year=2021/a-0.parquet: column 'x', row 0 is empty"):
        make_folder_dataset(tmp_path, test_share=0.25).load(0)


def test_one_of_several_tables_is_asked_for(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(ROWS)
    with pytest.raises(
        DataError, match=r"holds a.csv, b.csv; name one of its tables, as dataset.*a.csv, or join parts"
    ):
        make_folder_dataset(tmp_path).load(0)


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        (("cat1.png", "dog1.png"), "put the images into one folder for each class, as <class>/"),
    ],
)
def test_folders_that_are_not_read_are_named_with_a_remedy(tmp_path: Path, files: tuple[str, ...], advice: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"needs train.parquet or train.csv; it holds .*; .*{advice}"):
        make_folder_dataset(tmp_path).load(0)


def photos(path: Path, sizes: list[tuple[int, int]]) -> None:
    for part in ("train", "test"):
        for c, label in enumerate(("cat", "dog")):
            (path / part / label).mkdir(parents=True)
            for k, size in enumerate(sizes):
                pixels = np.full((*size, 3), 100 * c + k, np.uint8)
                Image.fromarray(pixels).save(path / part / label / f"{k}.png")


def test_a_folder_of_images_is_read_as_it_is(tmp_path: Path) -> None:
    photos(tmp_path / "p", [(4, 4)] * 3)
    raw = make_folder_dataset(tmp_path / "p").load(0)
    assert (raw.train_x.shape, raw.class_names, raw.inputs) == (
        (6, 3, 4, 4),
        ("cat", "dog"),
        "3 x 4 x 4: image; pixels divided by 255",
    )
    assert raw.train_x.max() == pytest.approx(102 / 255)


def test_images_of_different_sizes_name_the_command_that_makes_them_equal(tmp_path: Path) -> None:
    photos(tmp_path / "p", [(4, 4), (5, 4)])
    with pytest.raises(DataError, match=r"is an image of .*, but the first is one of .*fedcohort prepare imagefolder"):
        make_folder_dataset(tmp_path / "p").load(0)
