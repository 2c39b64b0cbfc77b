"""Tables of a user's own that `dataset=folder` must reject, or take with a notice.

A case goes through composing, loading and dealing as a run does; one that is accepted also trains for a round. Columns
of images and lists are in `table_images.py`, columns of clients in `table_clients.py`, CSV files and damaged files in
`table_files.py`.
"""

import io
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

from config_options import CONFIGS
from fedcohort.command.data import describe_split
from fedcohort.startup.command_line import run_with_one_line_errors
from folder_tables import set_value
from hostile.forked import fork
from hostile.harness import Answer, Case
from run_harness import compose_overrides, run_training

N = 40
LIMIT_S = 60
LABELS = [k % 3 for k in range(N)]
X = [float(k) / N for k in range(N)]
Columns = Mapping[str, Any]
LIST_COLUMN = [[float(k), float(k % 7)] for k in range(N)]
SMALL = ("clients=4", "cohort=2", "rounds=1", "model=logreg")


def load(
    folder: Path, build: Callable[[Path], object], overrides: Sequence[str], memory_bytes: int | None = None
) -> Answer:
    """Build the tables in `folder`/data, load them with the options `overrides`, and train for a round."""
    data = folder / "data"
    data.mkdir()
    build(data)
    warm_up()
    option_names = {override.split("=")[0] for override in overrides}
    path = () if "dataset.path" in option_names else (f"dataset.path={data}",)
    base = (
        *(override for override in SMALL if override.split("=")[0] not in option_names),
        "dataset=folder",
        *path,
        *overrides,
    )
    act = partial(run, folder / "logs", base)
    return fork(lambda: run_with_one_line_errors(act, base, CONFIGS), LIMIT_S, memory_bytes)


def run(logs: Path, overrides: Sequence[str]) -> None:
    """Load and deal the data, print what the start-up table says of them, and train."""
    federation, info = describe_split(compose_overrides(*overrides, f"paths.logs={logs}"), overrides)
    print(info.tags["inputs"], *federation.notices(), sep="\n", flush=True)
    run_training(logs, *overrides)


@cache
def warm_up() -> None:
    """Load and train once in this process, so that the forked ones import nothing."""
    with tempfile.TemporaryDirectory() as name:
        columns(Path(name), {})
        with redirect_stdout(io.StringIO()):
            run(Path(name) / "logs", (*SMALL, "dataset=folder", f"dataset.path={name}"))


def case(
    name: str,
    build: Callable[[Path], object],
    *expected: str,
    accepted: bool = False,
    overrides: str = "",
    memory_bytes: int | None = None,
) -> Case:
    return Case(name, lambda folder: load(folder, build, overrides.split(), memory_bytes), expected, accepted)


def columns(folder: Path, changes: Columns, test: Columns | None = None) -> Path:
    """Write train and test with the columns x and label, and changes of both; test: other changes of test."""
    for part, part_changes in (("train", changes), ("test", changes if test is None else test)):
        content = {"x": X, "label": LABELS, **part_changes}
        pq.write_table(pa.table({n: v for n, v in content.items() if v is not None}), folder / f"{part}.parquet")
    return folder


def table(name: str, changes: Columns, *expected: str, test: Columns | None = None, **case_options: Any) -> Case:
    return case(name, lambda folder: columns(folder, changes, test), *expected, **case_options)


def label_tables() -> list[Case]:
    big, texts = [2**62 + k for k in range(N)], ["cat", "dog", "eel"]
    text_labels = [texts[k] for k in LABELS]
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
        table("a negative label", {"label": set_value(LABELS, 3, -1)}, "row 3 has label -1"),
        table("a fractional label", {"label": set_value([float(k) for k in LABELS], 4, 0.5)}, "row 4 has label 0.5"),
        table(
            "an infinite label",
            {"label": set_value([float(k) for k in LABELS], 4, float("inf"))},
            "row 4 has label inf",
        ),
        table("a NaN label", {"label": set_value([float(k) for k in LABELS], 4, float("nan"))}, "row 4 is empty"),
        table("an empty label", {"label": set_value(LABELS, 5, None)}, "row 5 is empty"),
        table("all labels empty", {"label": [None] * N}, "row 0 is empty"),
        table("a text of spaces as a label", {"label": set_value(text_labels, 6, "  ")}, "row 6 is empty"),
        table(
            "a text among numbers",
            {"label": set_value([str(k) for k in LABELS], 2, "unknown")},
            "among whole numbers",
        ),
        table("one class", {"label": [0] * N}, "the single label 0"),
        table("one text", {"label": ["cat"] * N}, "the single label cat"),
        table(
            "every label once",
            {"label": [f"id{k}" for k in range(N)]},
            "labels that no training row has",
            test={"label": [f"id{k + 1}" for k in range(N)]},
        ),
        table(
            "test has a new class",
            {},
            "labels that no training row has: 3",
            test={"label": set_value(LABELS, 0, 3)},
        ),
        table(
            "test has a new text",
            {"label": text_labels},
            "that no training row has: fox",
            test={"label": set_value(text_labels, 0, "fox")},
        ),
        table(
            "train lacks a class that test has", {"label": [k % 2 for k in range(N)]}, "no training row has: 2", test={}
        ),
        table("test has texts", {}, "mixes texts and numbers with that of", test={"label": text_labels}),
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
        table("n_classes too small", {}, "at most 1", overrides="dataset.n_classes=2"),
        table(
            "n_classes too small for texts",
            {"label": text_labels},
            "3 different labels",
            overrides="dataset.n_classes=2",
        ),
        table("n_classes beyond the limit", {}, "n_classes must be", overrides="dataset.n_classes=100001"),
        table("n_classes a text", {}, "n_classes must be", overrides="dataset.n_classes=many"),
        table("the label is the feature", {}, "must be two columns", overrides="dataset.features=label"),
        table("the label is the client", {}, "must be two columns", overrides="dataset.client=label"),
        table("the label left out", {}, "leave_out and label must be", overrides="dataset.leave_out=[label]"),
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
        table("lists without features=", {"x": LIST_COLUMN}, "has no column of numbers"),
        table("a NaN cell", {"x": set_value(X, 3, float("nan"))}, "row 3 has a value that is NaN or infinite"),
        table("an infinite cell", {"x": set_value(X, 3, float("-inf"))}, "row 3 has a value that is NaN or infinite"),
        table("an empty cell", {"x": set_value(X, 3, None)}, "row 3 is empty", "dataset.missing=drop"),
        table("a cell beyond float32", {"x": set_value(X, 3, 1e39)}, "row 3 holds 1e+39, which float32 can't hold"),
        table("the first cell beyond float32", {"x": set_value(X, 0, -1e300)}, "row 0 holds -1e+300"),
        table("a constant feature", {"x": [1.0] * N}, "all 40 training samples are the same"),
        table(
            "a text among numbers",
            {"x": set_value([str(v) for v in X], 3, "?")},
            "row 3 holds '?', which is not a number",
        ),
        table(
            "a NaN in the test part",
            {},
            "test.parquet: column 'x', row 1 has a value",
            test={"x": set_value(X, 1, float("nan"))},
        ),
        table("test lacks the feature", {}, "test.parquet has no column 'x'", test={"x": None}),
        table("test lacks the label", {}, "test.parquet has no column 'label'", test={"label": None}),
        table("test has texts for numbers", {}, "must hold numbers", test={"x": texts}),
        table("test has lists for numbers", {}, "must hold numbers", test={"x": LIST_COLUMN}),
        table("an unknown column of features", {}, "has no column 'y'", overrides="dataset.features=y"),
        table("features= names scalars", {}, "must hold lists of numbers or images", overrides="dataset.features=x"),
        table(
            "features= names texts",
            {"x": texts},
            "must hold lists of numbers or images",
            overrides="dataset.features=x",
        ),
        table(
            "features= names bytes", {"x": [b"ab"] * N}, "must hold lists of numbers or", overrides="dataset.features=x"
        ),
        table("an unknown column left out", {}, "has no column 'id'", overrides="dataset.leave_out=[id]"),
        table("all left out", {}, "has no column of numbers", overrides="dataset.leave_out=[x]"),
        table("a scale of 0", {}, "scale must be", overrides="dataset.scale=0"),
        table("a scale that ends in 0", {}, "dataset.scale=1e-45 makes values of", overrides="dataset.scale=1e-45"),
        table("a scale beyond float32", {}, "dataset.scale=1e+300 makes values of", overrides="dataset.scale=1e300"),
        table("a shape of another size", {}, "dataset.shape=[3] must have 1 values", overrides="dataset.shape=[3]"),
        table("a shape of 0", {}, "shape", overrides="dataset.shape=[0]"),
        table(
            "a shape beyond int64",
            {},
            f"but has {9000000000**3}",
            overrides="dataset.shape=[9000000000,9000000000,9000000000]",
        ),
        table("bytes for numbers", {}, "pixels must be", overrides="dataset.pixels=uint8"),
        table("scaled and standardised", {}, "scale must be", overrides="dataset.scale=2 dataset.standardise=train"),
        table(
            "mean of nothing",
            {"y": [float("nan")] * N},
            "no number in any training row",
            overrides="dataset.missing=mean",
        ),
        table(
            "all rows dropped",
            {"y": [float("nan")] * N},
            "has no row without a missing",
            overrides="dataset.missing=drop",
        ),
        case("columns called alike", write_column_twice, "has 2 columns called 'x'"),
        table("a column without a name", {"": X}, "1: x (left out: '')", accepted=True),
        table("texts beside", {"note": texts}, "1: x (left out: note)", accepted=True),
        table("dates beside", {"when": dates}, "1: x (left out: when)", accepted=True),
        table("lists beside", {"list": LIST_COLUMN}, "1: x (left out: list)", accepted=True),
        table("a column of nulls beside", {"none": [None] * N}, "1: x (left out: none)", accepted=True),
        table("row numbers beside", {"Unnamed: 0": range(N)}, "1: x (left out: Unnamed: 0)", accepted=True),
        table("more columns in the test part", {}, "1: x", test={"z": X}, accepted=True),
        table("truth values", {"x": [k % 2 == 0 for k in range(N)]}, "1: x", accepted=True),
        table("decimals", {"x": pa.array(X).cast(pa.decimal128(30, 20), safe=False)}, "1: x", accepted=True),
        table("half precision", {"x": pa.array(np.array(X, np.float16))}, "1: x", accepted=True),
        table("categories", {"label": pa.array(["a", "b"] * (N // 2)).dictionary_encode()}, "1: x", accepted=True),
        table(
            "numbers as texts with bad cells dropped",
            {"x": set_value([str(v) for v in X], 3, "?")},
            "1 of 40 rows of train.parquet dropped",
            overrides="dataset.missing=drop",
            accepted=True,
        ),
        table(
            "empty cells filled",
            {"x": set_value(X, 3, None)},
            "1 training and 1 test cells filled",
            overrides="dataset.missing=mean",
            accepted=True,
        ),
        table("names in Unicode", {"größe 📏": X}, "2: x, größe 📏", accepted=True),
        table("a name with a line break", {"a\nb": X}, "2: x, a\nb", accepted=True),
        table("large integers", {"x": [10**15 + k for k in range(N)]}, "all 40 training samples are the same"),
    ]


def write_column_twice(folder: Path) -> None:
    for part in ("train", "test"):
        pq.write_table(
            pa.table([pa.array(X), pa.array(X), pa.array(LABELS)], ["x", "x", "label"]), folder / f"{part}.parquet"
        )


def cases() -> list[Case]:
    """List the cases: labels, features."""
    kinds = {"labels": label_tables(), "features": feature_tables()}
    return [replace(c, name=f"{kind}: {c.name}") for kind, group in kinds.items() for c in group]
