"""Tables of a user's own that `dataset=folder` must reject, or take with a notice.

A case goes through composing, loading and dealing as a run does; one that is accepted also trains for a round. Tables
are CSV and Parquet files, columns of lists and of encoded images.
"""

import gzip
import io
import os
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fedcohort.command.data import describe_split
from fedcohort.startup.command_line import run_with_one_line_errors
from folder_toy import at
from hostile.forked import fork
from hostile.harness import Answer, Case
from pictures_toy import encode, noise
from run_harness import compose_words, go
from yaml_words import CONFIGS

N = 40
LIMIT_S = 60
LABELS = [k % 3 for k in range(N)]
X = [float(k) / N for k in range(N)]
Columns = Mapping[str, Any]
SMALL = ("clients=4", "cohort=2", "rounds=1", "model=logreg")
IMAGES = [encode(image) for image in noise(N, (1, 8, 8))]
LISTS = [[float(k), float(k % 7)] for k in range(N)]


def load(folder: Path, build: Callable[[Path], object], words: Sequence[str]) -> Answer:
    """Build the tables in `folder`/data, load them with the options `words`, and train for a round."""
    data = folder / "data"
    data.mkdir()
    build(data)
    warm_up()
    chosen = {word.split("=")[0] for word in words}
    path = () if "dataset.path" in chosen else (f"dataset.path={data}",)
    base = (*(word for word in SMALL if word.split("=")[0] not in chosen), "dataset=folder", *path, *words)
    act = partial(run, folder / "logs", base)
    return fork(lambda: run_with_one_line_errors(act, base, CONFIGS), LIMIT_S)


def run(logs: Path, words: Sequence[str]) -> None:
    """Load and deal the data, print what the start-up table says of them, and train."""
    federation, info = describe_split(compose_words(*words, f"paths.logs={logs}"), words)
    print(info.tags["inputs"], *federation.notices(), sep="\n", flush=True)
    go(logs, *words)


@cache
def warm_up() -> None:
    """Load and train once in this process, so that the forked ones import nothing."""
    with tempfile.TemporaryDirectory() as name:
        columns(Path(name), {})
        with redirect_stdout(io.StringIO()):
            run(Path(name) / "logs", (*SMALL, "dataset=folder", f"dataset.path={name}"))


def case(name: str, build: Callable[[Path], object], *expected: str, accepted: bool = False, words: str = "") -> Case:
    return Case(name, lambda folder: load(folder, build, words.split()), expected, accepted)


# Parquet


def columns(folder: Path, changes: Columns, test: Columns | None = None) -> Path:
    """Write train and test with the columns x and label, and changes of both; test: other changes of test."""
    for part, part_changes in (("train", changes), ("test", changes if test is None else test)):
        content = {"x": X, "label": LABELS, **part_changes}
        pq.write_table(pa.table({n: v for n, v in content.items() if v is not None}), folder / f"{part}.parquet")
    return folder


def table(name: str, changes: Columns, *expected: str, test: Columns | None = None, **more: Any) -> Case:
    return case(name, lambda folder: columns(folder, changes, test), *expected, **more)


def label_tables() -> list[Case]:
    big, texts = [2**62 + k for k in range(N)], ["cat", "dog", "eel"]
    words = [texts[k] for k in LABELS]
    dates = pa.array([k * 86_400 for k in range(N)], pa.timestamp("s"))
    return [
        table("no label column", {"label": None}, "has no column 'label'"),
        table("label of another case", {"label": None, "Label": LABELS}, "has no column 'label'; it has x, Label"),
        table("label with a space", {"label": None, "label ": LABELS}, "has no column 'label'"),
        table("labels from 1 on", {"label": [k + 1 for k in LABELS]}, "no row has the label 0"),
        table("a gap in labels", {"label": [2 * k for k in LABELS]}, "no row has the label 1"),
        table("labels are years", {"label": [2000 + k for k in LABELS]}, "no row has the label 0"),
        table("labels beyond the limit", {"label": big}, "labels are texts, or whole numbers"),
        table(
            "labels unsigned beyond int64", {"label": pa.array([2**64 - 1] * N, pa.uint64())}, "labels are texts, or"
        ),
        table("a negative label", {"label": at(LABELS, 3, -1)}, "row 3 has label -1"),
        table("a fractional label", {"label": at([float(k) for k in LABELS], 4, 0.5)}, "row 4 has label 0.5"),
        table("an infinite label", {"label": at([float(k) for k in LABELS], 4, float("inf"))}, "row 4 has label inf"),
        table("a NaN label", {"label": at([float(k) for k in LABELS], 4, float("nan"))}, "row 4 is empty"),
        table("an empty label", {"label": at(LABELS, 5, None)}, "row 5 is empty"),
        table("all labels empty", {"label": [None] * N}, "row 0 is empty"),
        table("a text of spaces as a label", {"label": at(words, 6, "  ")}, "row 6 is empty"),
        table("a text among numbers", {"label": at([str(k) for k in LABELS], 2, "unknown")}, "among whole numbers"),
        table("one class", {"label": [0] * N}, "one label only, 0"),
        table("one text", {"label": ["cat"] * N}, "one label only, cat"),
        table(
            "every label once",
            {"label": [f"id{k}" for k in range(N)]},
            "labels that no training row has",
            test={"label": [f"id{k + 1}" for k in range(N)]},
        ),
        table("test has a new class", {}, "labels that no training row has: 3", test={"label": at(LABELS, 0, 3)}),
        table(
            "test has a new text",
            {"label": words},
            "that no training row has: fox",
            test={"label": at(words, 0, "fox")},
        ),
        table(
            "train lacks a class that test has", {"label": [k % 2 for k in range(N)]}, "no training row has: 2", test={}
        ),
        table("test has texts", {}, "mixes texts and numbers with that of", test={"label": words}),
        table("labels are lists", {"label": [[k] for k in LABELS]}, "labels are texts, or whole numbers"),
        table("labels are structs", {"label": [{"a": k} for k in LABELS]}, "labels are texts, or whole numbers"),
        table("labels are dates", {"label": dates}, "labels are texts, or whole numbers"),
        table("labels are bytes", {"label": [b"cat"] * N}, "labels are texts, or whole numbers"),
        table(
            "labels are durations",
            {"label": pa.array(range(N), pa.duration("s"))},
            "labels are texts, or whole numbers",
        ),
        table("labels are times", {"label": pa.array(range(N), pa.time32("s"))}, "labels are texts, or whole numbers"),
        table("n_classes too small", {}, "at most 1", words="dataset.n_classes=2"),
        table("n_classes too small for texts", {"label": words}, "3 different labels", words="dataset.n_classes=2"),
        table("n_classes beyond the limit", {}, "n_classes must be", words="dataset.n_classes=100001"),
        table("n_classes a text", {}, "n_classes must be", words="dataset.n_classes=many"),
        table("the label is the feature", {}, "must be two columns", words="dataset.features=label"),
        table("the label is the client", {}, "must be two columns", words="dataset.client=label"),
        table("the label left out", {}, "leave_out and label must be", words="dataset.leave_out=[label]"),
    ]


def feature_tables() -> list[Case]:
    dates = pa.array([k * 86_400 for k in range(N)], pa.timestamp("s"))
    texts = [f"a{k}" for k in range(N)]
    return [
        table("no feature", {"x": None}, "has no column of numbers besides the label"),
        table("texts alone", {"x": texts}, "has no column of numbers"),
        table("dates alone", {"x": dates}, "has no column of numbers"),
        table("nulls alone", {"x": [None] * N}, "has no column of numbers"),
        table("bytes alone", {"x": [b"\0"] * N}, "has no column of numbers"),
        table("a row number alone", {"x": None, "Unnamed: 0": range(N)}, "has no column of numbers"),
        table("an index alone", {"x": None, "index": range(N)}, "has no column of numbers"),
        table("structs alone", {"x": [{"a": 1.0}] * N}, "has no column of numbers"),
        table(
            "maps alone", {"x": pa.array([[("a", 1.0)]] * N, pa.map_(pa.string(), pa.float64()))}, "no column of num"
        ),
        table("lists without features=", {"x": LISTS}, "has no column of numbers"),
        table("a NaN cell", {"x": at(X, 3, float("nan"))}, "row 3 has a value that is NaN or infinite"),
        table("an infinite cell", {"x": at(X, 3, float("-inf"))}, "row 3 has a value that is NaN or infinite"),
        table("an empty cell", {"x": at(X, 3, None)}, "row 3 is empty", "dataset.missing=drop"),
        table("a cell beyond float32", {"x": at(X, 3, 1e39)}, "row 3 holds 1e+39, which float32 can't hold"),
        table("the first cell beyond float32", {"x": at(X, 0, -1e300)}, "row 0 holds -1e+300"),
        table("a constant feature", {"x": [1.0] * N}, "all 40 training samples are the same"),
        table("a text among numbers", {"x": at([str(v) for v in X], 3, "?")}, "row 3 holds '?', which is not a number"),
        table(
            "a NaN in the test part",
            {},
            "test.parquet: column 'x', row 1 has a value",
            test={"x": at(X, 1, float("nan"))},
        ),
        table("test lacks the feature", {}, "test.parquet has no column 'x'", test={"x": None}),
        table("test lacks the label", {}, "test.parquet has no column 'label'", test={"label": None}),
        table("test has texts for numbers", {}, "must hold numbers", test={"x": texts}),
        table("test has lists for numbers", {}, "must hold numbers", test={"x": LISTS}),
        table("an unknown column of features", {}, "has no column 'y'", words="dataset.features=y"),
        table("features= names scalars", {}, "must hold lists of numbers or images", words="dataset.features=x"),
        table(
            "features= names texts", {"x": texts}, "must hold lists of numbers or images", words="dataset.features=x"
        ),
        table("features= names bytes", {"x": [b"ab"] * N}, "must hold lists of numbers or", words="dataset.features=x"),
        table("an unknown column left out", {}, "has no column 'id'", words="dataset.leave_out=[id]"),
        table("all left out", {}, "has no column of numbers", words="dataset.leave_out=[x]"),
        table("a scale of 0", {}, "scale must be", words="dataset.scale=0"),
        table("a scale that ends in 0", {}, "dataset.scale=1e-45 leaves nothing", words="dataset.scale=1e-45"),
        table("a scale beyond float32", {}, "dataset.scale=1e+300 leaves nothing", words="dataset.scale=1e300"),
        table("a shape of another size", {}, "dataset.shape=[3] holds 3 values", words="dataset.shape=[3]"),
        table("a shape of 0", {}, "shape", words="dataset.shape=[0]"),
        table("a shape beyond int64", {}, "holds", words="dataset.shape=[9000000000,9000000000,9000000000]"),
        table("bytes for numbers", {}, "pixels must be", words="dataset.pixels=uint8"),
        table("scaled and standardised", {}, "scale must be", words="dataset.scale=2 dataset.standardise=train"),
        table(
            "mean of nothing", {"y": [float("nan")] * N}, "no number in any training row", words="dataset.missing=mean"
        ),
        table(
            "all rows dropped", {"y": [float("nan")] * N}, "has no row without a missing", words="dataset.missing=drop"
        ),
        case("columns called alike", twice, "has 2 columns called 'x'"),
        table("a column without a name", {"": X}, "1: x (left out: '')", accepted=True),
        table("texts beside", {"note": texts}, "1: x (left out: note)", accepted=True),
        table("dates beside", {"when": dates}, "1: x (left out: when)", accepted=True),
        table("lists beside", {"list": LISTS}, "1: x (left out: list)", accepted=True),
        table("a column of nulls beside", {"none": [None] * N}, "1: x (left out: none)", accepted=True),
        table("row numbers beside", {"Unnamed: 0": range(N)}, "1: x (left out: Unnamed: 0)", accepted=True),
        table("more columns in the test part", {}, "1: x", test={"z": X}, accepted=True),
        table("truth values", {"x": [k % 2 == 0 for k in range(N)]}, "1: x", accepted=True),
        table("decimals", {"x": pa.array(X).cast(pa.decimal128(30, 20), safe=False)}, "1: x", accepted=True),
        table("half precision", {"x": pa.array(np.array(X, np.float16))}, "1: x", accepted=True),
        table("categories", {"label": pa.array(["a", "b"] * (N // 2)).dictionary_encode()}, "1: x", accepted=True),
        table(
            "numbers as texts with bad cells dropped",
            {"x": at([str(v) for v in X], 3, "?")},
            "1 of 40 rows of train.parquet dropped",
            words="dataset.missing=drop",
            accepted=True,
        ),
        table(
            "empty cells filled",
            {"x": at(X, 3, None)},
            "1 training and 1 test cells filled",
            words="dataset.missing=mean",
            accepted=True,
        ),
        table("names in Unicode", {"größe 📏": X}, "2: x, größe 📏", accepted=True),
        table("a name with a line break", {"a\nb": X}, "2: x, a\nb", accepted=True),
        table("large integers", {"x": [10**15 + k for k in range(N)]}, "all 40 training samples are the same"),
    ]


def twice(folder: Path) -> None:
    for part in ("train", "test"):
        pq.write_table(
            pa.table([pa.array(X), pa.array(X), pa.array(LABELS)], ["x", "x", "label"]), folder / f"{part}.parquet"
        )


def client_tables() -> list[Case]:
    names = [f"c{k // 10}" for k in range(N)]
    own = "dataset.client=who clients=null"

    def clients(name: str, values: Any, *expected: str, test: Columns | None = None, **more: Any) -> Case:
        return table(name, {"who": values}, *expected, test=test, words=more.pop("words", own), **more)

    return [
        clients("no client column", None, "has no column 'who'"),
        clients("one client", ["a"] * N, "cohort"),
        clients("an empty client", at(names, 7, None), "row 7 is empty"),
        clients("a NaN client", at([float(k // 10) for k in range(N)], 7, float("nan")), "row 7"),
        clients("a client of spaces", at(names, 7, " "), "row 7 is empty"),
        clients("fractional clients", [k / 2 for k in range(N)], "row 1 has client 0.5"),
        clients("infinite clients", at([float(k // 10) for k in range(N)], 7, float("inf")), "row 7"),
        clients("clients are lists", [[k // 10] for k in range(N)], "who"),
        clients("clients are dates", pa.array([k // 10 for k in range(N)], pa.timestamp("s")), "who"),
        clients("clients are bytes", [b"a", b"b"] * (N // 2), "who"),
        clients("clients of one row", [f"c{k}" for k in range(N)], "owners with more than 3 training samples"),
        clients("one client of one row", at(names, 0, "z"), "fewer than"),
        clients("clients of two rows", [f"c{k // 2}" for k in range(N)], "owners with more than 3"),
        clients(
            "no client of train has test rows",
            names,
            "no client of the training data has test rows",
            test={"who": [f"d{k // 10}" for k in range(N)]},
        ),
        clients("test has no clients", names, "1: x", test={"who": None}, accepted=True),
        clients("test has texts, train numbers", [k // 10 for k in range(N)], "who", test={"who": names}),
        clients("test has other clients, too", names, "1: x", test={"who": at(names, 0, "z")}, accepted=True),
        clients("clients= of owners", names, "clients", words="dataset.client=who clients=100"),
        clients(
            "client column with another partition",
            names,
            "dataset.client=who",
            words="dataset.client=who heterogeneity=noniid30",
        ),
        clients("huge ids", [2**62 + k // 10 for k in range(N)], "1: x", accepted=True),
        clients("negative ids", [-(k // 10) for k in range(N)], "1: x", accepted=True),
        clients("ids in Unicode", [f"Ü{k // 10} ☃" for k in range(N)], "1: x", accepted=True),
        clients(
            "the client column is an input",
            names,
            "must be two columns",
            words="dataset.client=who dataset.features=who",
        ),
    ]


def images(name: str, values: Any, *expected: str, words: str = "", **more: Any) -> Case:
    return table(name, {"x": None, "image": values}, *expected, words=f"dataset.features=image {words}", **more)


def bitmap(width: int, height: int) -> dict[str, bytes]:
    """Return a bitmap of one bit a pixel, all of one colour, as a column of images holds it."""
    stride = (width + 31) // 32 * 4
    head = struct.pack("<2sIHHI", b"BM", 62 + stride * height, 0, 0, 62)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 1, 0, stride * height, 0, 0, 2, 0)
    return {"bytes": head + info + b"\0\0\0\0\xff\xff\xff\0" + bytes(stride * height)}


def image_tables() -> list[Case]:
    other, wide = encode(noise(1, (1, 9, 8))[0]), [encode(image) for image in noise(N, (1, 9, 8))]
    colour = encode(noise(1, (3, 8, 8))[0])

    def broken(content: bytes | None) -> list[Any]:
        return at(IMAGES, 5, {"bytes": content})

    return [
        images("an image of another size", at(IMAGES, 5, other), "row 5 is an image of (1, 9, 8)"),
        images("a colour image among grey ones", at(IMAGES, 5, colour), "row 5 is an image of (3, 8, 8)"),
        images("an image that is missing", at(IMAGES, 5, None), "row 5 is empty"),
        images("an image without bytes", broken(None), "row 5 is empty"),
        images("an image of no bytes", broken(b""), "row 5 is empty"),
        images("an image that is a text", broken(b"hello"), "row 5 can't be read as an image"),
        images("an image that is cut off", broken(IMAGES[5]["bytes"][:40]), "row 5 can't be read as an image"),
        images("an image that is a web page", broken(b"<html></html>"), "row 5 can't be read as an image"),
        images("an image's beginning alone", broken(b"\xff\xd8\xff\xe0"), "row 5 can't be read as an image"),
        images(
            "an image with a damaged header",
            broken(IMAGES[5]["bytes"][:20] + bytes(40)),
            "row 5 can't be read as an image",
        ),
        images("paths without bytes", [{"path": f"{k}.png"} for k in range(N)], "must hold lists of numbers or images"),
        images("paths as texts", [f"{k}.png" for k in range(N)], "must hold lists of numbers or images"),
        images("encoded bytes without a struct", [image["bytes"] for image in IMAGES], "must hold lists of numbers or"),
        images("bytes that are texts", [{"bytes": "x"}] * N, "must hold lists of numbers or images"),
        images("images all equal", [IMAGES[0]] * N, "all 40 training samples are the same"),
        images(
            "test images of another size", IMAGES, "a sample has the shape [1, 9, 8]", test={"x": None, "image": wide}
        ),
        images("test images are lists", IMAGES, "a sample has the shape", test={"x": None, "image": LISTS}),
        images("images of 80 megapixels", [bitmap(9000, 8900)] * N, "images of", "GB are available", "size=64"),
        images(
            "an image of 2 gigapixels",
            at(
                IMAGES,
                5,
                {"bytes": bitmap(8, 8)["bytes"][:18] + struct.pack("<ii", 50_000, 50_000) + bitmap(8, 8)["bytes"][26:]},
            ),
            "row 5 can't be read as an image",
        ),
        images("images standardised", IMAGES, "pixels must be", words="dataset.pixels=uint8 dataset.standardise=train"),
        images("images with a shape of another size", IMAGES, "holds 9 values", words="dataset.shape=[1,3,3]"),
        images("images, and leave_out", IMAGES, "leave_out must be", words="dataset.leave_out=[x]"),
        images("lists of two lengths", at(LISTS, 5, [1.0]), "row 5 has a list of another length"),
        images("an empty list", at(LISTS, 0, []), "row 0"),
        images("all lists empty", [[]] * N, "row 0"),
        images("a list that is missing", at(LISTS, 5, None), "row 5 is empty"),
        images("a list with a missing number", at(LISTS, 5, [1.0, None]), "row 5 has a value that is missing"),
        images("a list with NaN", at(LISTS, 5, [1.0, float("nan")]), "row 5 has a value that is missing, NaN or inf"),
        images(
            "a list with an infinite number", at(LISTS, 5, [1.0, float("inf")]), "row 5 has a value that is missing"
        ),
        images("a list beyond float32", at(LISTS, 5, [1.0, 1e300]), "row 5 has a value that is missing"),
        images(
            "a list of integers with a missing one", at([[k, 1] for k in range(N)], 5, [1, None]), "row 5 has a value"
        ),
        images("lists of texts", [["a", "b"]] * N, "must hold lists of numbers or images"),
        images("lists of structs", [[{"a": 1}]] * N, "must hold lists of numbers or images"),
        images("lists of truth values", [[k % 2 == 0, True] for k in range(N)], "2: image", accepted=True),
        images(
            "ragged lists of lists", at([[[1.0], [float(k)]] for k in range(N)], 5, [[1.0]]), "row 5 has a list of an"
        ),
        images(
            "ragged lists inside", at([[[1.0], [float(k)]] for k in range(N)], 5, [[1.0], [1.0, 2.0]]), "row 5 has a"
        ),
        images(
            "test lists of another length", LISTS, "a sample has the shape [1]", test={"x": None, "image": [[1.0]] * N}
        ),
        images("lists of decimals", pa.array(LISTS).cast(pa.list_(pa.decimal128(20, 5))), "2: image", accepted=True),
        images("lists of int64 beyond float32's digits", [[2**60 + k, k] for k in range(N)], "2: image", accepted=True),
        images(
            "a list with a missing number, filled",
            at(LISTS, 5, [1.0, None]),
            "cells filled",
            accepted=True,
            words="dataset.missing=mean",
        ),
    ]


# Files


def csv(folder: Path, train: str | bytes, test: str | bytes | None = None) -> None:
    for part, content in (("train", train), ("test", train if test is None else test)):
        (folder / f"{part}.csv").write_bytes(content.encode() if isinstance(content, str) else content)


def rows(separator: str = ",", end: str = "\n", header: str = "x,label") -> str:
    lines = [header.replace(",", separator), *(f"{x}{separator}{label}" for x, label in zip(X, LABELS, strict=True))]
    return end.join(lines) + end


def text(name: str, train: str | bytes, *expected: str, test: str | bytes | None = None, **more: Any) -> Case:
    return case(name, lambda folder: csv(folder, train, test), *expected, **more)


def csv_tables() -> list[Case]:
    good = rows()
    return [
        text("semicolons", rows(";"), "1: x; columns separated by semicolons", accepted=True),
        text("tabs", rows("\t"), "1: x; columns separated by tabs", accepted=True),
        text("bars", rows("|"), "1: x; columns separated by bars", accepted=True),
        text("spaces", rows(" "), "separates columns by ' '"),
        text("decimal commas", rows(";").replace(".", ","), "separated by semicolons; decimal commas", accepted=True),
        text("a short row of semicolons", rows(";") + "0.5\n", "row 40 has 1 cells, the header has 2"),
        text(
            "decimal commas in quotes",
            "x,label\n" + "".join(f'"0,{k}",{k % 3}\n' for k in range(N)),
            "turn texts into numbers",
        ),
        text("no header", good.partition("\n")[2], "begins with numbers, and its first line must hold the names"),
        text("two headers", "a,b\n" + good, "has no column 'label'"),
        text("a comment first", "# written by hand\n" + good, "can't be read"),
        text("an empty file", "", "can't be read"),
        text("a header alone", "x,label\n", "has no rows"),
        text("blank lines alone", "\n\n\n", "train.csv"),
        text("a short row", good + "0.5\n", "can't be read"),
        text("a long row", good + "0.5,1,2\n", "can't be read"),
        text("an open quote", good + '"0.5,1\n', "can't be read"),
        text("UTF-16", good.encode("utf-16"), "1: x; decoded from UTF-16", accepted=True),
        text("UTF-16 cut off", good.encode("utf-16")[:-1], "begins as UTF-16 text"),
        text("a gzip file", gzip.compress(good.encode()), "1: x; unpacked from gzip", accepted=True),
        text("a gzip file cut off", gzip.compress(good.encode())[:-9], "is a damaged or incomplete gzip file"),
        text("Latin-1", ("größe," + good).encode("latin1"), "is no UTF-8 text"),
        text("zero bytes", good.encode() + bytes(200), "train.csv"),
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
        text("columns called alike", good.replace("x,label", "x,x"), "2 columns called 'x'"),
        text("header of quotes", good.replace("x,label", '"x","label"'), "1: x", accepted=True),
        text("a byte order mark", b"\xef\xbb\xbf" + good.encode(), "1: x", accepted=True),
        text("lines of Windows", rows(end="\r\n"), "1: x", accepted=True),
        text("lines of old Macs", rows(end="\r"), "1: x", accepted=True),
        text("a blank line at the end", good + "\n", "1: x", accepted=True),
        text("blank lines inside", good.replace("\n", "\n\n"), "1: x", accepted=True),
        text("an empty cell", good + ",1\n", "row 40 is empty"),
        text("NA", good + "NA,1\n", "row 40 is empty"),
        text("NaN", good + "NaN,1\n", "row 40"),
        text("inf", good + "inf,1\n", "row 40 has a value that is NaN or infinite"),
        text("a question mark", good + "?,1\n", "row 40 holds '?'"),
        text("a unit", good + "3 cm,1\n", "row 40 holds '3 cm'"),
        text("thousands", good + '"1,000",1\n', "row 40 holds '1,000'"),
        text("hexadecimal", good + "0xzz,1\n", "row 40 holds '0xzz'"),
        text("a number of 400 digits", good + "9" * 400 + ",1\n", "row 40"),
        text("1e999", good + "1e999,1\n", "row 40"),
        text("a label with spaces", good.replace(",1\n", ", 1\n"), "1: x", accepted=True),
        text("an unknown label", good + "0.5,?\n", "'?' among whole numbers"),
        text("a label of 30 digits", good + "0.5," + "9" * 30 + "\n", "label"),
        text("a label 1e3", good + "0.5,1e3\n", "label"),
        text(
            "true and false",
            good.replace(",1\n", ",true\n").replace(",0\n", ",false\n").replace(",2\n", ",true\n"),
            "1: x",
            accepted=True,
        ),
        text("a cell of 20 MB", good + "9" * 20_000_000 + ",1\n", "train.csv"),
        text("a header of 100 KB", good.replace("x,", "x" * 100_000 + ","), "1: x", accepted=True),
        text("one row", "x,label\n0.5,0\n", "one label only"),
        text("two rows", "x,label\n0.5,0\n0.7,1\n", "feasible"),
        text("test of one row", good, "1: x", test="x,label\n0.5,0\n", accepted=True),
        text("test without rows", good, "has no rows", test="x,label\n"),
        text(
            "test with columns in another order",
            good,
            "1: x",
            accepted=True,
            test="label,x\n" + "".join(f"{y},{x}\n" for x, y in zip(X, LABELS, strict=True)),
        ),
    ]


def damaged(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        columns(folder, {})
        file = folder / "train.parquet"
        file.write_bytes(change(file.read_bytes()))

    return build


def flipped(place: Callable[[int], int]) -> Callable[[bytes], bytes]:
    return lambda content: bytes(b ^ (0xFF * (k == place(len(content)))) for k, b in enumerate(content))


def special(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
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
    bad = "can't be read"
    return [
        case("no file", lambda folder: None, "needs train.parquet or train.csv; it holds nothing"),
        case("no train", remove("train.parquet"), "needs train.parquet or train.csv; it holds test.parquet"),
        case("no test", remove("test.parquet"), "dataset.test_share=0.2"),
        case("test cut twice", lambda f: columns(f, {}), "test_share must be null", words="dataset.test_share=0.2"),
        case("test_share of 1", lambda f: columns(f, {}), "test_share must be", words="dataset.test_share=1"),
        case("CSV and Parquet", special("train.csv", lambda f: f.write_text(rows())), "holds both"),
        case(
            "Train.parquet",
            special("train.parquet", lambda f: columns_at(f.with_name("Train.parquet"))),
            "Train.parquet is the training table",
            accepted=True,
        ),
        case("Parquet empty", damaged(lambda c: b""), bad),
        case("Parquet cut off", damaged(lambda c: c[:-20]), bad),
        case("Parquet's end alone", damaged(lambda c: c[-50:]), bad),
        case("Parquet without its magic", damaged(lambda c: b"XXXX" + c[4:]), "1: x", accepted=True),
        case("Parquet with a changed footer", damaged(flipped(lambda n: n - 60)), "train.parquet"),
        case("Parquet with a changed length", damaged(flipped(lambda n: n - 6)), bad),
        case("Parquet of zeros", damaged(lambda c: bytes(len(c))), bad),
        case("Parquet that is a CSV", damaged(lambda c: rows().encode()), bad),
        case("Parquet that is a text", damaged(lambda c: b"hello"), bad),
        case(
            "a CSV that is Parquet",
            renamed,
            "train.csv",
        ),
        case("a pipe for train", special("train.parquet", os.mkfifo), "train.parquet is no regular file"),
        case("a pipe for a CSV", special("train.csv", os.mkfifo), "train.csv is no regular file"),
        case("a pipe for test", special("test.parquet", os.mkfifo), "test.parquet is no regular file"),
        case("a pipe for valid", special("valid.parquet", os.mkfifo), "valid.parquet is no regular file"),
        case("a device for train", special("train.parquet", lambda f: f.symlink_to("/dev/zero")), "no regular file"),
        case("a folder for train", special("train.parquet", Path.mkdir), "no regular file"),
        case("a broken link", special("train.parquet", lambda f: f.symlink_to("nowhere")), "no regular file"),
        case("a link to itself", special("train.parquet", lambda f: f.symlink_to(f.name)), "no regular file"),
        case("valid empty", special("valid.csv", lambda f: f.write_text("")), "valid.csv can't be read"),
        case(
            "valid without the label", special("valid.csv", lambda f: f.write_text("x\n1\n")), "valid.csv has no column"
        ),
        case(
            "valid with a new class", special("valid.csv", lambda f: f.write_text("x,label\n1,7\n")), "no training row"
        ),
        case(
            "valid left alone",
            special("valid.csv", lambda f: f.write_text("x\n")),
            "valid.csv isn't read",
            accepted=True,
            words="dataset.valid=none",
        ),
        case("train a list of files", special("train.parquet", folder_of_parts), "1: x", accepted=True),
        case("path missing", lambda f: None, "there is no such file or folder", words="dataset.path=/nowhere/at/all"),
        case("path a file", lambda f: None, "has no test table", words="dataset.path=/etc/passwd"),
        case("path a device", lambda f: None, "this is no folder", words="dataset.path=/dev/null"),
        case("path null", lambda f: None, "path must be", words="dataset.path=null"),
        case("path a number", lambda f: None, "path must be", words="dataset.path=7"),
        case("path of a user who is not there", lambda f: None, "can't read", words="dataset.path=~nouser/data"),
        case("path of 300 characters", lambda f: None, bad, words=f"dataset.path={'a' * 300}"),
        case("a row group without rows", empty_group, "1: x", accepted=True),
        case("Parquet without rows", lambda f: columns(f, {"x": [], "label": []}), "has no rows"),
        case("Parquet without columns", lambda f: no_columns(f), "train.parquet"),
        case("row groups of other types", lambda f: mixed_groups(f), "row 20", words="dataset.features=x"),
        case(
            "100,000 classes of 40 rows",
            lambda f: columns(f, {}),
            "1: x",
            accepted=True,
            words="dataset.n_classes=100000",
        ),
        case("more clients than rows", lambda f: columns(f, {}), "feasible: clients<=", words="clients=1000"),
        case("a limit below the clients", lambda f: columns(f, {}), "clients", words="split.limit=3"),
    ]


def folder_of_parts(file: Path) -> None:
    file.mkdir()
    columns(file, {})


def renamed(folder: Path) -> None:
    os.rename(columns(folder, {}) / "train.parquet", folder / "train.csv")


def columns_at(file: Path) -> None:
    pq.write_table(pa.table({"x": X, "label": LABELS}), file)


def empty_group(folder: Path) -> None:
    whole = pa.table({"x": X, "label": LABELS})
    for part in ("train", "test"):
        with pq.ParquetWriter(folder / f"{part}.parquet", whole.schema) as writer:
            for piece in (whole.slice(0, 0), whole, whole.slice(0, 0)):
                writer.write_table(piece)


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
    kinds = {
        "labels": label_tables(),
        "features": feature_tables(),
        "clients": client_tables(),
        "images": image_tables(),
        "CSV": csv_tables(),
        "files": files(),
    }
    return [replace(c, name=f"{kind}: {c.name}") for kind, group in kinds.items() for c in group]
