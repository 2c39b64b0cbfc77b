import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from case_loop import for_all
from fedcohort.dataset.arrow_columns import is_row_index_column
from fedcohort.dataset.files import read_part_table, read_table
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError, OptionError
from fedcohort.host import memory


def local(path: str) -> list[Frame]:
    return [read_part_table(path, part) for part in ("train", "test")]


def frame(**columns: object) -> Frame:
    return Frame("made.parquet", pa.table(columns))


def encode_pixels(pixels: np.ndarray, kind: str = "PNG") -> dict[str, object]:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, lossless=True)
    return {"bytes": buffer.getvalue(), "path": None}


def test_a_missing_column_is_rejected_with_the_existing_ones() -> None:
    with pytest.raises(DataError, match=r"^dataset.path: made.parquet has no column 'y'; it has a, b$"):
        frame(a=[1], b=[2]).column("y")


def test_numeric_columns_become_a_matrix_in_the_requested_order() -> None:
    np.testing.assert_array_equal(frame(a=[1, 2], b=[0.5, 4.0]).read_matrix(["b", "a"]), [[0.5, 1], [4, 2]])


def test_a_matrix_is_read_in_blocks_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five columns of seven rows, two columns at a time."""
    monkeypatch.setattr("fedcohort.dataset.table.COLUMNS_PER_BLOCK", 2)
    expected = np.arange(35.0).reshape(7, 5)
    columns = {f"x{j}": expected[:, j] for j in range(5)}
    np.testing.assert_array_equal(frame(**columns).read_matrix(list(columns)), expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], "column 'b', row 1 has a value that is NaN or infinite"),
        ([float("inf"), 1.0], "column 'b', row 0 has a value that is NaN or infinite"),
        ([1.0, None], "column 'b', row 1 is empty"),
        (["x", "y"], "column 'b' must hold numbers, but holds string"),
    ],
)
def test_invalid_numbers_of_a_column_are_rejected(values: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        frame(a=[1, 2], b=values).read_matrix(["a", "b"])


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.uint8()), pa.large_list(pa.float32()), pa.list_(pa.int16(), 4)], ids=["list", "large", "fixed"]
)
def test_list_columns_of_every_type_become_arrays(kind: pa.DataType) -> None:
    rows = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    column = pa.chunked_array([pa.array(rows[:1], kind), pa.array(rows[1:], kind)])
    np.testing.assert_array_equal(frame(x=column).read_arrays("x"), rows)
    # A slice starts in the middle of its buffer.
    np.testing.assert_array_equal(Frame("cut", pa.table({"x": column}).slice(1, 2)).read_arrays("x"), rows[1:])


def test_nested_list_columns_become_arrays() -> None:
    rows = np.arange(24).reshape(2, 3, 4).tolist()
    np.testing.assert_array_equal(frame(x=rows).read_arrays("x"), rows)


@for_all(
    "rows, message",
    [
        ([[1, 2], [3]], "row 1 has a list of another length than the first"),
        ([[1.0, 2.0], [3.0, float("nan")]], "row 1 has a value that is missing, NaN or infinite"),
        ([[1, 2], [3, None]], "row 1 has a value that is missing, NaN or infinite"),
        ([[1, 2], None], "row 1 is empty"),
        ([[], []], "row 0 holds an empty list"),
        ([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0]]], "row 1 has a list of another length than the first"),
        ([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], None]], "row 1 has a list of another length than the first"),
        ([["a"], ["b"]], "must hold lists of numbers or images, but holds list"),
        ([1, 2], "must hold lists of numbers or images, but holds int64"),
    ],
)
def test_invalid_list_columns_are_rejected(rows: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        frame(x=rows).read_arrays("x")


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_missing_numbers_in_lists_are_rejected_or_become_nan(kind: pa.DataType) -> None:
    """Infinite ones are missing, too, whatever the width of the file's numbers."""
    column = pa.array([[np.float16(1), np.float16("inf")], [None, np.float16(2)]], pa.list_(kind))
    with pytest.raises(DataError, match="row 0 has a value that is missing, NaN or infinite"):
        frame(x=column).read_arrays("x")
    result = frame(x=column).read_arrays("x", allow_missing=True)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[1, np.nan], [np.nan, 2]])


def test_a_list_column_is_read_over_many_row_groups(tmp_path: Path) -> None:
    """No two of them are in memory at a time, rows are counted on, and a type that changes on the way is carried."""
    rows = [[1, 2], [3, 4], [5, None], [7, 8], [9, 10]]
    pa.parquet.write_table(pa.table({"x": rows}), tmp_path / "train.parquet", row_group_size=2)
    stored = read_table(tmp_path / "train.parquet")
    with pytest.raises(DataError, match="row 2 has a value that is missing"):
        stored.read_arrays("x")
    result = stored.read_arrays("x", allow_missing=True)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[1, 2], [3, 4], [5, np.nan], [7, 8], [9, 10]])


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ([7, 8, 9], r"row 2 has the shape \(3,\), but row 0 has \(2,\)"),
        (None, "row 2 is empty"),
        ([], "row 2 holds an empty list"),
    ],
)
def test_a_row_group_with_other_list_lengths_is_rejected(tmp_path: Path, last: list[int] | None, message: str) -> None:
    pa.parquet.write_table(pa.table({"x": [[1, 2], [3, 4], last]}), tmp_path / "train.parquet", row_group_size=2)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "train.parquet").read_arrays("x")


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_decoded_colour_images_have_the_channel_axis_first(kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 4, 3)).astype(np.uint8)
    images = frame(image=[encode_pixels(image, kind) for image in pixels]).read_arrays("image")
    np.testing.assert_array_equal(images, pixels.transpose(0, 3, 1, 2))


def test_grey_images_have_one_channel_and_palettes_become_colours() -> None:
    pixels = np.random.default_rng(0).integers(0, 2, (3, 5, 4)).astype(np.uint8)
    assert frame(image=[encode_pixels(image) for image in pixels]).read_arrays("image").shape == (3, 1, 5, 4)
    palette = Image.fromarray(pixels[0], "P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    buffer = io.BytesIO()
    palette.save(buffer, "PNG")
    (image,) = frame(image=[{"bytes": buffer.getvalue(), "path": "a.png"}]).read_arrays("image")
    np.testing.assert_array_equal(image, 10 * np.arange(1, 4)[:, None, None] + 30 * pixels[0])


def test_cells_that_are_no_images_are_rejected() -> None:
    valid = encode_pixels(np.zeros((4, 4), np.uint8))
    truncated = {"bytes": valid["bytes"][:40], "path": None}  # type: ignore[index]
    with pytest.raises(DataError, match=r"column 'image', row 1 can't be read as an image"):
        frame(image=[valid, truncated]).read_arrays("image")
    gray_image = encode_pixels(np.zeros((4, 5), np.uint8))
    with pytest.raises(DataError, match=r"row 1 is an image of \(1, 4, 5\), but the first is one of \(1, 4, 4\)"):
        frame(image=[valid, gray_image]).read_arrays("image")
    sixteen_bit = encode_pixels(np.full((4, 4), 1000, np.uint16))
    with pytest.raises(DataError, match=r"row 1 has more than 8 bits per pixel \(mode I;16\), but 8 are supported"):
        frame(image=[valid, sixteen_bit]).read_arrays("image")


def test_an_image_of_another_size_is_rejected_with_its_file_and_a_remedy(tmp_path: Path) -> None:
    grey, colours = (encode_pixels(np.zeros((4, 4, *channels), np.uint8)) for channels in ((), (3,)))
    rows = [{**grey, "path": "cat/0.png"}, {**colours, "path": "cat/1.png"}]
    with pytest.raises(
        DataError,
        match=r"row 1 is an image of \(3, 4, 4\) \(cat/1.png\), .*; all images must .* fedcohort prepare imagefol",
    ):
        frame(image=rows).read_arrays("image")
    pa.parquet.write_table(pa.table({"image": rows}), tmp_path / "train.parquet", row_group_size=1)
    with pytest.raises(DataError, match=r"row 1 is an image of \(3, 4, 4\).*; all images must .* fedcohort prepare im"):
        read_table(tmp_path / "train.parquet").read_arrays("image")


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_images_are_rotated_by_their_exif_orientation(kind: str) -> None:
    """6: the right side of what was seen is the bottom of what is stored."""
    pixels, buffer, note = np.arange(12, dtype=np.uint8).reshape(2, 2, 3), io.BytesIO(), Image.Exif()
    note[0x0112] = 6
    Image.fromarray(pixels).save(buffer, kind, lossless=True, exif=note)
    (image,) = frame(image=[{"bytes": buffer.getvalue()}]).read_arrays("image")
    np.testing.assert_array_equal(image.transpose(1, 2, 0), np.rot90(pixels, -1))


def test_unreadable_exif_metadata_is_ignored() -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(buffer, "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert frame(image=[{"bytes": buffer.getvalue()}]).read_arrays("image").shape == (1, 1, 4, 4)


def test_a_large_csv_file_may_have_quoted_line_breaks(tmp_path: Path) -> None:
    """Arrow reads a CSV file in blocks of a megabyte, and a line break was one between rows."""
    (tmp_path / "train.csv").write_text("a,note\n" + '1,"one\ntwo"\n' * 100_000)
    assert read_table(tmp_path / "train.csv").column("note").value_counts().to_pylist() == [
        {"values": "one\ntwo", "counts": 100_000}
    ]


def test_truncated_parquet_files_are_rejected_by_name(tmp_path: Path) -> None:
    file = tmp_path / "train.parquet"
    pa.parquet.write_table(pa.table({"a": list(range(9999))}), file)
    content = file.read_bytes()
    for size in (0, 100, len(content) // 2, len(content) - 5):
        file.write_bytes(content[:size])
        with pytest.raises(DataError, match=r"train.parquet can't be read, it is truncated or no parquet file: "):
            read_table(file)
    file.write_bytes(content[:50] + bytes(200) + content[250:])  # the footer is there, the data are not
    with pytest.raises(DataError, match=r"train.parquet can't be read"):
        read_table(file).column("a")  # columns are read when they are asked for
    ragged = tmp_path / "test.csv"
    ragged.write_text("a,b\n1,2\n3\n")
    with pytest.raises(DataError, match=r"test.csv can't be read, it is truncated or no csv file: "):
        read_table(ragged)
    pa.parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), file)
    with pytest.raises(DataError, match=r"train.parquet has no rows"):
        read_table(file)


def test_missing_folders_and_tables_are_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"dataset.path=.*nowhere: there is no such file or folder"):
        local(str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"needs train.parquet or train.csv; it holds nothing"):
        local(str(tmp_path))
    (tmp_path / "train.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"needs test.parquet or test.csv; it holds train.csv"):
        local(str(tmp_path))


@pytest.mark.parametrize("text", ["a,stadt,label\n1,Köln,0\n", "a,größe,label\n1,2,0\n"])
@pytest.mark.parametrize("encoding", ["latin-1"])
def test_csv_files_in_another_encoding_are_rejected(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "train.csv").write_bytes(text.encode(encoding))
    with pytest.raises(
        DataError, match=r"^dataset.path: .*train.csv is no UTF-8 text \(byte 0xf.* after line \d+\): save it as"
    ):
        read_table(tmp_path / "train.csv")
    (tmp_path / "train.csv").write_text(text, encoding="utf-8-sig")
    assert read_table(tmp_path / "train.csv").names[0] == "a"


@pytest.mark.parametrize("path", ["~nobody-here/x", "x" * 5000, "\0", "/proc/1/root"])
def test_invalid_data_paths_are_rejected(path: str) -> None:
    with pytest.raises(
        DataError, match=r"^dataset.path=.*(can't be read|no such file or folder|no folder|needs train)"
    ):
        local(path)


def test_two_tables_of_one_part_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a\n1\n")
    (tmp_path / "train.parquet").write_text("")
    with pytest.raises(DataError, match=r"holds both train.parquet and train.csv: move one of them away"):
        local(str(tmp_path))


@pytest.mark.parametrize("notes", [b"{", b"[]", b"null", b'{"index_columns": null}', b"\xff"])
def test_unreadable_pandas_metadata_is_ignored(notes: bytes) -> None:
    notes_frame = Frame("made", pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": notes}))
    assert not is_row_index_column(notes_frame.table, "a")


def test_too_large_or_missing_images_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for side in (11, 30):  # a warning of Pillow's, and an error
        with pytest.raises(DataError, match=rf"row 0 can't be read as an image: Image size \({side**2} pixels\)"):
            frame(image=[encode_pixels(np.zeros((side, side), np.uint8))]).read_arrays("image")
    with pytest.raises(DataError, match=r"row 0 is empty"):
        frame(image=[{"bytes": None, "path": "a.png"}]).read_arrays("image")
    with pytest.raises(DataError, match=r"must hold lists of numbers or images, but holds struct<bytes: int64>"):
        frame(image=[{"bytes": 3}]).read_arrays("image")


def test_a_csv_that_cannot_fit_is_rejected_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of 4,000 bytes is the least that it takes."""
    (tmp_path / "train.csv").write_text("a\n" + "x" * 3998)
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 999.0)
    with pytest.raises(OptionError, match=r"train.csv \(0.0 GB\) needs at least 0.0 GB .*: write it as Parquet"):
        local(str(tmp_path))
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 1000.0)
    assert read_table(tmp_path / "train.csv").table.num_rows == 1
