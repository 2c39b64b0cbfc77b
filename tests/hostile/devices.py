"""Tables and options of devices that are damaged, out of range, contradictory or merely odd.

Each case is a run of one round, in a fork of a process that has imported everything.
"""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.forked import fork
from hostile.harness import Answer, Case
from run_harness import compose_overrides, run_composition

LIMIT_S = 120
RUN = (
    *("clients=3", "cohort=2", "rounds=1", "model=logreg", "client.epochs=1", "split.limit=120", "heterogeneity=iid"),
    *("logger=none", "callback=none", "eval.clients_every=0"),
)
Columns = Mapping[str, Sequence[Any]]
Feed = Callable[[Path], None]
DEVICES: dict[str, list[Any]] = {"client": [0, 1, 2], "seconds": [0.1] * 3, "down": [9.0] * 3, "up": [3.0] * 3}
NAN, INF = float("nan"), float("inf")


@cache
def import_everything() -> None:
    """Make a run in this process: its imports and its composed config are there in each fork."""
    with tempfile.TemporaryDirectory() as logs:
        run_composition(compose_overrides(*RUN, f"paths.logs={logs}"))


def train(folder: Path, *overrides: str) -> Answer:
    """Run what `python train.py <overrides>` runs, in a fork of this process, with a time limit."""
    import_everything()

    def action() -> None:
        run_composition(compose_overrides(*RUN, *overrides, f"paths.logs={folder / 'logs'}"))

    answer = fork(action, LIMIT_S)
    logs = (folder / "logs").glob("runs/*/run.log")  # without Hydra's console, notices of a run are there
    return Answer(answer.code, answer.text + "".join(path.read_text(errors="replace") for path in logs))


def option_case(name: str, overrides: Sequence[str], *expected: str, accepted: bool = False) -> Case:
    return Case(name, lambda folder: train(folder, *overrides), expected, accepted)


def file_case(name: str, group: str, file: str, feed: Feed, overrides: Sequence[str], expected: Sequence[str]) -> Case:
    """A case whose table `feed` writes under the name `file`."""

    def run(folder: Path) -> Answer:
        feed(folder / file)
        return train(folder, f"{group}=trace", f"{group}.path={folder / file}", *overrides)

    return Case(name, run, tuple(expected))


def table_case(
    group: str, name: str, columns: Columns, *expected: str, overrides: Sequence[str] = (), accepted: bool = False
) -> Case:
    """Return a case with a Parquet table of the group's columns."""

    def run(folder: Path) -> Answer:
        path = folder / f"{group}.parquet"
        pq.write_table(pa.table(dict(columns)), path)
        return train(folder, f"{group}=trace", f"{group}.path={path}", *overrides)

    return Case(f"{group}: {name}", run, expected, accepted)


def device_tables() -> list[Case]:
    def case(name: str, columns: Columns, *expected: str, overrides: Sequence[str] = ()) -> Case:
        return table_case("device", name, {**DEVICES, **columns}, *expected, overrides=overrides)

    seconds, cv = "device.seconds", ("device.seconds_cv=cv",)
    return [
        case("seconds of 1e308", {"seconds": [1.0, 1e308, 1.0]}, seconds, "row 1 holds 1e+308"),
        case("seconds that are subnormal", {"seconds": [5e-324, 1.0, 1.0]}, seconds, "row 0", "1e-12"),
        case("seconds in nanoseconds", {"seconds": [10**12, 2 * 10**12, 10**12]}, seconds, "row 0 holds 1000000000000"),
        case("negative seconds", {"seconds": [1.0, 1.0, -1.0]}, seconds, "row 2 holds -1.0"),
        case("no seconds", {"seconds": [0.0, 1.0, 1.0]}, seconds, "row 0 holds 0.0"),
        case("seconds of NaN", {"seconds": [1.0, NAN, 1.0]}, seconds, "row 1 has a value that is NaN"),
        case("infinite seconds", {"seconds": [1.0, INF, 1.0]}, seconds, "row 1 has a value that is NaN"),
        case("an empty cell", {"seconds": [None, 1.0, 1.0]}, seconds, "row 0 is empty"),
        case("true for seconds", {"seconds": [True, True, True]}, seconds, "must hold numbers"),
        case("words for seconds", {"seconds": ["fast", "1", "1"]}, seconds, "row 0 holds 'fast'"),
        case("decimal commas", {"seconds": ["0,1", "0,2", "0,3"]}, seconds, "must hold numbers"),
        case("underscores in numbers", {"seconds": ["1_000", "1", "1"]}, seconds, "row 0 holds '1_000'"),
        case(
            "moments for seconds",
            {"seconds": [datetime(2024, 1, 1)] * 3},
            seconds,
            "must hold numbers",
        ),
        case("lists for seconds", {"seconds": [[1.0], [2.0], [3.0]]}, seconds, "must hold numbers"),
        case("a link of 1e308", {"down": [1e308, 9.0, 9.0]}, "device.down", "row 0 holds 1e+308"),
        case("a link that is subnormal", {"up": [3.0, 5e-324, 3.0]}, "device.up", "row 1 holds 5e-324", "1e-6"),
        case("a link of nothing", {"up": [3.0, 0.0, 3.0]}, "device.up", "row 1 holds 0.0"),
        case("a negative link", {"down": [9.0, 9.0, -9.0]}, "device.down", "row 2 holds -9.0"),
        case(
            "a deviation of 1e308", {"cv": [0.1, 1e308, 0.1]}, "device.seconds_cv", "row 1 holds 1e+308", overrides=cv
        ),
        case("a negative deviation", {"cv": [0.1, -0.1, 0.1]}, "device.seconds_cv", "row 1 holds -0.1", overrides=cv),
        case(
            "a deviation of NaN",
            {"cv": [0.1, NAN, 0.1]},
            "device.seconds_cv",
            "row 1 has a value that is NaN",
            overrides=cv,
        ),
        case("an option for a missing column", {}, "device.up_cv", "no column 'sd'", overrides=["device.up_cv=sd"]),
        case("names as seconds", {}, "device.seconds and client", "'client'", overrides=["device.seconds=client"]),
        case("seconds as a link", {}, "device.down and seconds", "'seconds'", overrides=["device.down=seconds"]),
        case("means as deviations", {}, "device.up_cv and up", overrides=["device.up_cv=up"]),
        case("a name twice", {"client": [0, 1, 1]}, "device.client", "row 2 has the name of row 1"),
        case("names with fractions", {"client": [0.5, 1.0, 2.0]}, "device.client", "row 0 has name 0.5"),
        case("a missing name", {"client": [0, None, 2]}, "device.client", "row 1 is empty"),
        case("flags as names", {"client": [True, False, True]}, "device.client", "has the name of row"),
        case("spaces around a name", {"client": ["a", "b ", "c"]}, "device.client", "row 1", "'b '"),
        case("a gap in the names", {"client": [0, 1, 3]}, "device.client", "add client 2", "device.draw=true"),
        case("too few rows", {}, "has 3 rows, too few for 4", "device.draw=true", overrides=["clients=4"]),
        case(
            "seconds times epochs overflow",
            {"seconds": [1e8] * 3},
            *("1e-9 to 1e12 are allowed", "client.epochs", "device"),
            overrides=["client.epochs=1000000"],
        ),
    ]


def write_bytes(content: bytes) -> Feed:
    def feed(path: Path) -> None:
        path.write_bytes(content)

    return feed


def write_truncated(path: Path) -> None:
    pq.write_table(pa.table(DEVICES), path)
    path.write_bytes(path.read_bytes()[:-40])


def device_files() -> list[Case]:
    def case(name: str, file: str, feed: Feed, *expected: str) -> Case:
        return file_case(f"device: {name}", "device", file, feed, (), ("device.path", *expected))

    rows = "client,seconds,down,up\n0,1,1,1\n1,1,1,1\n2,1,1,1\n"
    none: Feed = lambda path: None  # noqa: E731
    return [
        case("an empty file", "d.csv", write_bytes(b""), "can't be read"),
        case("a heading alone", "d.csv", write_bytes(b"client,seconds,down,up\n"), "has no rows"),
        case("a truncated table", "d.parquet", write_truncated, "can't be read"),
        case("text under .parquet", "d.parquet", write_bytes(rows.encode()), "can't be read"),
        case("zeros", "d.parquet", write_bytes(bytes(1000)), "can't be read"),
        case("a row that is too long", "d.csv", write_bytes((rows + "3,1,1,1,1\n").encode()), "can't be read"),
        case("two columns of a name", "d.csv", write_bytes(b"client,seconds,down,up,up\n0,1,1,1,1\n"), "2 columns"),
        case("a folder", "d.parquet", Path.mkdir, "no such file"),
        case("a named pipe", "d.csv", os.mkfifo, "no such file"),
        case("a missing file", "d.csv", none, "no such file"),
        case("a link to nothing", "d.csv", lambda path: path.symlink_to("nowhere.csv"), "no such file"),
        file_case(
            *("device: names in Latin-1", "device", "d.csv", write_bytes(rows.replace("\n0", "\né").encode("latin-1"))),
            *((), ["device."]),
        ),
        file_case("device: a spreadsheet", "device", "d.xlsx", write_bytes(b"PK"), (), ["path", ".parquet or .csv"]),
    ]


def device_options() -> list[Case]:
    def case(name: str, overrides: Sequence[str], *expected: str, device: str = "trace") -> Case:
        return option_case(f"device={device}: {name}", [f"device={device}", *overrides], *expected)

    shifted, phones = "shifted_exponential", "phones"
    return [
        case("a batch of none", ["device.path=d.csv", "device.batch=0"], "batch", "got 0"),
        case("a batch with a fraction", ["device.path=d.csv", "device.batch=1.5"], "batch", "got 1.5"),
        case("a batch of 1e30", ["device.path=d.csv", f"device.batch={10**30}"], "batch", "1e9"),
        case("a batch of 400 digits", ["device.path=d.csv", f"device.batch={10**400}"], "batch", "1e9"),
        case("Mbit", ["device.path=d.csv", "device.unit=Mbit/s"], "unit", "kbit/s", "'Mbit/s'"),
        case("a second of 1e308", ["device.unit_s=1e308"], "unit_s", "1e+308", device=shifted),
        case("a second of nothing", ["device.unit_s=0"], "unit_s", "got 0", device=shifted),
        case("a shift of 1e308", ["device.alpha=1e308"], "alpha", "1e+308", device=shifted),
        case("a negative tail", ["device.lam=-1"], "lam", "got -1", device=shifted),
        case("a tail of 1e308", ["device.lam=1e308"], "lam", "1e+308", device=shifted),
        case("neither shift nor tail", ["device.alpha=0", "device.lam=0"], "alpha and lam", device=shifted),
        case("a shift that vanishes", ["device.alpha=1e-300", "device.lam=0"], "virtual seconds", device=shifted),
        case("a second of 400 digits", [f"device.unit_s={10**400}"], "unit_s", device=shifted),
        case("a scale of 1e308", ["device.scale=1e308"], "scale", "1e+308", device=phones),
        case("a subnormal scale", ["device.scale=5e-324"], "scale", "5e-324", device=phones),
        case("a scale of NaN", ["device.scale=nan"], "scale", "nan", device=phones),
        case(
            "proportions of 1e308", ["device.proportions=[1e308,1e308,1e308]"], "proportions", "1e+308", device=phones
        ),
        case("two proportions", ["device.proportions=[1,2]"], "proportions", "three numbers", device=phones),
        case("no phones", ["device.proportions=[0,0,0]"], "proportions", "not all 0", device=phones),
        case("an unknown workload", ["device.workload=mnist"], "workload", "femnist", "'mnist'", device=phones),
    ]


def cases() -> list[Case]:
    """List the cases: tables, files and options."""
    return [*device_tables(), *device_files(), *device_options()]
