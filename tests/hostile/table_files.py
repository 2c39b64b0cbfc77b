"""Files of a user's own tables that `dataset=folder` must reject, or take with a notice: CSV, Parquet, wrong files."""

import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.harness import Case
from hostile.tables import LABELS, N, X, case, columns


def csv(folder: Path, train: str | bytes, test: str | bytes | None = None) -> None:
    for part, content in (("train", train), ("test", train if test is None else test)):
        (folder / f"{part}.csv").write_bytes(content.encode() if isinstance(content, str) else content)


def rows(separator: str = ",", end: str = "\n", header: str = "x,label") -> str:
    lines = [header.replace(",", separator), *(f"{x}{separator}{label}" for x, label in zip(X, LABELS, strict=True))]
    return end.join(lines) + end


def text(name: str, train: str | bytes, *expected: str, test: str | bytes | None = None, **case_options: Any) -> Case:
    return case(name, lambda folder: csv(folder, train, test), *expected, **case_options)


def csv_tables() -> list[Case]:
    valid_csv = rows()
    return [
        text("semicolons", rows(";"), "1: x; columns separated by semicolons", accepted=True),
        text("tabs", rows("\t"), "1: x; columns separated by tabs", accepted=True),
        text("bars", rows("|"), "1: x; columns separated by bars", accepted=True),
        text("spaces", rows(" "), "separates columns by spaces"),
        text("decimal commas", rows(";").replace(".", ","), "separated by semicolons; decimal commas", accepted=True),
        text("a short row of semicolons", rows(";") + "0.5\n", "row 40 has 1 cells, the header has 2"),
        text(
            "decimal commas in quotes",
            "x,label\n" + "".join(f'"0,{k}",{k % 3}\n' for k in range(N)),
            "decimal commas as text ('0,0'): read them with dataset.decimal=comma",
        ),
        text(
            "no header", valid_csv.partition("\n")[2], "begins with numbers, but its first line must name the columns"
        ),
        text("two headers", "a,b\n" + valid_csv, "has no column 'label'"),
        text("a comment first", "# written by hand\n" + valid_csv, "can't be read"),
        text("an empty file", "", "can't be read"),
        text("a header alone", "x,label\n", "has no rows"),
        text("blank lines alone", "\n\n\n", "train.csv"),
        text("a short row", valid_csv + "0.5\n", "can't be read"),
        text("a long row", valid_csv + "0.5,1,2\n", "can't be read"),
        text("an open quote", valid_csv + '"0.5,1\n', "can't be read"),
        text("UTF-16", valid_csv.encode("utf-16"), "1: x; decoded from UTF-16", accepted=True),
        text("UTF-16 cut off", valid_csv.encode("utf-16")[:-1], "begins as UTF-16 text"),
        text("a gzip file", gzip.compress(valid_csv.encode()), "1: x; unpacked from gzip", accepted=True),
        text("a gzip file cut off", gzip.compress(valid_csv.encode())[:-9], "is a damaged or incomplete gzip file"),
        text("Latin-1", ("größe," + valid_csv).encode("latin1"), "is no UTF-8 text"),
        text("zero bytes", valid_csv.encode() + bytes(200), "train.csv"),
        text("gzip", b"\x1f\x8b\x08\x00" + bytes(range(200)), "is a damaged or incomplete gzip file"),
        text("a ZIP file", b"PK\x03\x04" + bytes(30), "train.csv"),
        text("a workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "is an Excel workbook"),
        text("a web page", "<html>\n<body>not found</body>\n</html>\n", "has no column of numbers"),
        text("JSON", '{"x": 1, "label": 0}\n' * 3, "train.csv"),
        text(
            "a pointer of Git LFS",
            "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
            "is a pointer of Git LFS",
        ),
        text("columns called alike", valid_csv.replace("x,label", "x,x"), "2 columns called 'x'"),
        text("header of quotes", valid_csv.replace("x,label", '"x","label"'), "1: x", accepted=True),
        text("a byte order mark", b"\xef\xbb\xbf" + valid_csv.encode(), "1: x", accepted=True),
        text("lines of Windows", rows(end="\r\n"), "1: x", accepted=True),
        text("lines of old Macs", rows(end="\r"), "1: x", accepted=True),
        text("a blank line at the end", valid_csv + "\n", "1: x", accepted=True),
        text("blank lines inside", valid_csv.replace("\n", "\n\n"), "1: x", accepted=True),
        text("an empty cell", valid_csv + ",1\n", "row 40 is empty"),
        text("NA", valid_csv + "NA,1\n", "row 40 is empty"),
        text("NaN", valid_csv + "NaN,1\n", "row 40"),
        text("inf", valid_csv + "inf,1\n", "row 40 has a value that is NaN or infinite"),
        text("a question mark", valid_csv + "?,1\n", "row 40 holds '?'"),
        text("a unit", valid_csv + "3 cm,1\n", "row 40 holds '3 cm'"),
        text("thousands", valid_csv + '"1,000",1\n', "row 40 holds '1,000'"),
        text("hexadecimal", valid_csv + "0xzz,1\n", "row 40 holds '0xzz'"),
        text("a number of 400 digits", valid_csv + "9" * 400 + ",1\n", "row 40"),
        text("1e999", valid_csv + "1e999,1\n", "row 40"),
        text("a label with spaces", valid_csv.replace(",1\n", ", 1\n"), "1: x", accepted=True),
        text("an unknown label", valid_csv + "0.5,?\n", "'?' among whole numbers"),
        text("a label of 30 digits", valid_csv + "0.5," + "9" * 30 + "\n", "label"),
        text("a label 1e3", valid_csv + "0.5,1e3\n", "label"),
        text(
            "true and false",
            valid_csv.replace(",1\n", ",true\n").replace(",0\n", ",false\n").replace(",2\n", ",true\n"),
            "1: x",
            accepted=True,
        ),
        text("a cell of 20 MB", valid_csv + "9" * 20_000_000 + ",1\n", "train.csv"),
        text("a header of 100 KB", valid_csv.replace("x,", "x" * 100_000 + ","), "1: x", accepted=True),
        text("one row", "x,label\n0.5,0\n", "the single label"),
        text("two rows", "x,label\n0.5,0\n0.7,1\n", "feasible"),
        text("test of one row", valid_csv, "1: x", test="x,label\n0.5,0\n", accepted=True),
        text("test without rows", valid_csv, "has no rows", test="x,label\n"),
        text(
            "test with columns in another order",
            valid_csv,
            "1: x",
            accepted=True,
            test="label,x\n" + "".join(f"{y},{x}\n" for x, y in zip(X, LABELS, strict=True)),
        ),
    ]


def damage_table(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        columns(folder, {})
        file = folder / "train.parquet"
        file.write_bytes(change(file.read_bytes()))

    return build


def flip_byte(place: Callable[[int], int]) -> Callable[[bytes], bytes]:
    return lambda content: bytes(b ^ (0xFF * (k == place(len(content)))) for k, b in enumerate(content))


def replace_part(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a build of good tables where `make` takes the place of the file `name`."""

    def build(folder: Path) -> None:
        columns(folder, {})
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return build


def remove(*names: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        columns(folder, {})
        for name in names:
            (folder / name).unlink()

    return build


def files() -> list[Case]:
    unreadable = "can't be read"
    return [
        case("no file", lambda folder: None, "needs train.parquet or train.csv; it holds nothing"),
        case("no train", remove("train.parquet"), "needs train.parquet or train.csv; it holds test.parquet"),
        case("no test", remove("test.parquet"), "dataset.test_share=0.2"),
        case("test cut twice", lambda f: columns(f, {}), "test_share must be null", overrides="dataset.test_share=0.2"),
        case("test_share of 1", lambda f: columns(f, {}), "test_share must be", overrides="dataset.test_share=1"),
        case("CSV and Parquet", replace_part("train.csv", lambda f: f.write_text(rows())), "holds both"),
        case(
            "Train.parquet",
            replace_part("train.parquet", lambda f: write_columns(f.with_name("Train.parquet"))),
            "Train.parquet is the training table",
            accepted=True,
        ),
        case("Parquet empty", damage_table(lambda c: b""), unreadable),
        case("Parquet cut off", damage_table(lambda c: c[:-20]), unreadable),
        case("Parquet's end alone", damage_table(lambda c: c[-50:]), unreadable),
        case("Parquet without its magic", damage_table(lambda c: b"XXXX" + c[4:]), "1: x", accepted=True),
        case("Parquet with a changed footer", damage_table(flip_byte(lambda n: n - 60)), "train.parquet"),
        case("Parquet with a changed length", damage_table(flip_byte(lambda n: n - 6)), unreadable),
        case("Parquet of zeros", damage_table(lambda c: bytes(len(c))), unreadable),
        case("Parquet that is a CSV", damage_table(lambda c: rows().encode()), unreadable),
        case("Parquet that is a text", damage_table(lambda c: b"hello"), unreadable),
        case(
            "a CSV that is Parquet",
            rename_table,
            "train.csv",
        ),
        case("a pipe for train", replace_part("train.parquet", os.mkfifo), "train.parquet is no regular file"),
        case("a pipe for a CSV", replace_part("train.csv", os.mkfifo), "train.csv is no regular file"),
        case("a pipe for test", replace_part("test.parquet", os.mkfifo), "test.parquet is no regular file"),
        case("a pipe for valid", replace_part("valid.parquet", os.mkfifo), "valid.parquet is no regular file"),
        case(
            "a device for train", replace_part("train.parquet", lambda f: f.symlink_to("/dev/zero")), "no regular file"
        ),
        case("a folder for train", replace_part("train.parquet", Path.mkdir), "no regular file"),
        case("a broken link", replace_part("train.parquet", lambda f: f.symlink_to("nowhere")), "no regular file"),
        case("a link to itself", replace_part("train.parquet", lambda f: f.symlink_to(f.name)), "no regular file"),
        case("valid empty", replace_part("valid.csv", lambda f: f.write_text("")), "valid.csv can't be read"),
        case(
            "valid without the label",
            replace_part("valid.csv", lambda f: f.write_text("x\n1\n")),
            "valid.csv has no column",
        ),
        case(
            "valid with a new class",
            replace_part("valid.csv", lambda f: f.write_text("x,label\n1,7\n")),
            "no training row",
        ),
        case(
            "valid left alone",
            replace_part("valid.csv", lambda f: f.write_text("x\n")),
            "valid.csv isn't read",
            accepted=True,
            overrides="dataset.valid=none",
        ),
        case("train a list of files", replace_part("train.parquet", folder_of_parts), "1: x", accepted=True),
        case(
            "path missing", lambda f: None, "there is no such file or folder", overrides="dataset.path=/nowhere/at/all"
        ),
        case("path a file", lambda f: None, "has no test table", overrides="dataset.path=/etc/passwd"),
        case("path a device", lambda f: None, "this is no folder", overrides="dataset.path=/dev/null"),
        case("path null", lambda f: None, "path must be", overrides="dataset.path=null"),
        case("path a number", lambda f: None, "path must be", overrides="dataset.path=7"),
        case("path of a user who is not there", lambda f: None, "can't read", overrides="dataset.path=~nouser/data"),
        case("path of 300 characters", lambda f: None, unreadable, overrides=f"dataset.path={'a' * 300}"),
        case("a row group without rows", empty_group, "1: x", accepted=True),
        case("Parquet without rows", lambda f: columns(f, {"x": [], "label": []}), "has no rows"),
        case("Parquet without columns", lambda f: no_columns(f), "train.parquet"),
        case("row groups of other types", lambda f: mixed_groups(f), "row 20", overrides="dataset.features=x"),
        case(
            "100,000 classes of 40 rows",
            lambda f: columns(f, {}),
            "1: x",
            accepted=True,
            overrides="dataset.n_classes=100000",
        ),
        case("more clients than rows", lambda f: columns(f, {}), "feasible: clients<=", overrides="clients=1000"),
        case("a limit below the clients", lambda f: columns(f, {}), "clients", overrides="split.limit=3"),
    ]


def folder_of_parts(file: Path) -> None:
    file.mkdir()
    columns(file, {})


def rename_table(folder: Path) -> None:
    os.rename(columns(folder, {}) / "train.parquet", folder / "train.csv")


def write_columns(file: Path) -> None:
    pq.write_table(pa.table({"x": X, "label": LABELS}), file)


def empty_group(folder: Path) -> None:
    table = pa.table({"x": X, "label": LABELS})
    for part in ("train", "test"):
        with pq.ParquetWriter(folder / f"{part}.parquet", table.schema) as writer:
            for row_group in (table.slice(0, 0), table, table.slice(0, 0)):
                writer.write_table(row_group)


def no_columns(folder: Path) -> None:
    for part in ("train", "test"):
        pq.write_table(pa.table({}), folder / f"{part}.parquet")


def mixed_groups(folder: Path) -> None:
    """The second row group's lists have another length."""
    first = pa.table({"x": [[1.0, float(k)] for k in range(20)], "label": [k % 2 for k in range(20)]})
    second = pa.table({"x": [[1.0, 2.0, 3.0]] * 20, "label": [k % 2 for k in range(20)]})
    for part in ("train", "test"):
        with pq.ParquetWriter(folder / f"{part}.parquet", first.schema) as writer:
            writer.write_table(first)
            writer.write_table(second)


def cases() -> list[Case]:
    """List the cases: CSV tables, then files."""
    groups = {"CSV": csv_tables(), "files": files()}
    return [replace(case, name=f"{kind}: {case.name}") for kind, group in groups.items() for case in group]
