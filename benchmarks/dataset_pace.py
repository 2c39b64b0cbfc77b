"""Rounds per minute and peak memory while loading, for each dataset.

    python benchmarks/dataset_pace.py dataset[=folder] [...]     writes dataset_pace.csv and dataset_pace.md

    python benchmarks/dataset_pace.py digits cifar10=data/cifar10 shakespeare=data/shakespeare reddit=generated

Each dataset is trained for a few rounds through train.py, with its default federation and a suitable model
(`MODELS_BY_DATASET`). `generated` in place of a folder uses random data with the layout and size of the original
(`made_data.py`). Peak memory is measured in a process that only loads and partitions the data, and is counted from
before loading. The multiple is peak memory divided by the bytes of the resulting tensors. The rows of datasets that
the command does not name remain unchanged.
"""

import csv
import datetime
import json
import math
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import made_data
from fedcohort.dataset import folder, image_dataset, leaf  # noqa: F401  imported before memory is measured
from fedcohort.dataset.files import read_table, release_unused_memory
from fedcohort.record import provenance
from fedcohort.startup import components, compose, split  # noqa: F401
from fedcohort.startup.load import DATA_GROUPS, load_federation

SCRIPT = Path(__file__).resolve()
ROOT = SCRIPT.parents[1]
ROUNDS = 5
NATURAL_CLIENTS = ("clients=null",)  # one client per user, writer or subject of the data
# With 50 clients, a round of EMNIST or of Spawrious would take ten times MNIST's.
MODELS_BY_DATASET: dict[str, tuple[str, ...]] = {
    "digits": (),
    "synthetic": ("client.lr=0.01", "model=logreg"),
    "mnist": ("model=cnn",),
    "fashion_mnist": ("model=cnn",),
    "emnist": ("clients=500", "model=cnn"),
    "cifar10": ("model=resnet8_gn",),
    "cifar100": ("heterogeneity=iid", "model=resnet8_gn"),
    "cmnist": ("model=cnn",),
    "femnist": (*NATURAL_CLIENTS, "model=cnn_leaf_femnist", "client.batch=10"),
    "celeba": (*NATURAL_CLIENTS, "model=cnn_leaf_celeba", "client.batch=10"),
    "uci_har": (*NATURAL_CLIENTS, "cohort=5", "model=har_cnn", "client.batch=10", "client.lr=0.005"),
    "shakespeare": (*NATURAL_CLIENTS, "dataset.test=given", "dataset.users=0.05", "dataset.step=5", "model=char_lstm"),
    "reddit": (*NATURAL_CLIENTS, "model=word_lstm", "client.clip=5", "client.lr=2"),
    "waterbirds": ("dataset.size=64", "heterogeneity=iid", "model=cnn"),
    "spawrious": ("clients=1000", "dataset.size=64", "heterogeneity=iid", "model=cnn"),
}
FULL_SIZE: dict[str, tuple[str, ...]] = {  # the row above uses a subset; loaded only, as a round takes minutes
    "shakespeare": (*NATURAL_CLIENTS, "dataset.test=given", "model=char_lstm"),
}
SEQUENCES = {"shakespeare": (*NATURAL_CLIENTS, "model=char_lstm")}  # generated in LEAF's format, and loaded only
WITHOUT_FILES = ("digits", "synthetic")
GENERATED = "generated"
QUIET = ("logger=none", "callback.figures=null", "eval.clients_every=0")


@dataclass(frozen=True)
class Cost:
    """Cost of one dataset: a line of dataset_pace.csv.

    Attributes:
        overrides: options of the run besides the dataset and its path.
        generated: whether the data are random.
        round_s: median seconds per round; nan without rounds.
        tensor_bytes: bytes of all tensors of the federation.
        peak_bytes: largest memory while loading, minus the memory before it.
        other_load: load average of the last minute, minus this benchmark's own process.
    """

    dataset: str
    overrides: str
    generated: bool
    clients: int
    samples: int
    round_s: float
    tensor_bytes: int
    peak_bytes: int
    other_load: float
    date: str
    commit: str


def measure(dataset: str, overrides: tuple[str, ...], source: str | None, rounds: int = ROUNDS) -> Cost:
    """Measure the cost of a dataset in new processes.

    `source` is the folder of the data, `GENERATED`, or None for a dataset without files. With `rounds=0`, only memory
    is measured.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if source == GENERATED:
            made_data.write_tables(dataset, Path(scratch))
        data_folder = scratch if source == GENERATED else Path(source or "").absolute()
        path_override = () if source is None else (f"dataset.path={data_folder}",)
        arguments = (f"dataset={dataset}", *path_override, *overrides)
        round_s = time_round(arguments, rounds) if rounds else math.nan
        command = [sys.executable, str(SCRIPT), "--load", *arguments]
        memory_report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    other_load = round(max(0.0, os.getloadavg()[0] - 1), 1)
    commit, dirty = provenance.current_commit()
    commit_label = f"{commit[:10]}{' with uncommitted changes' if dirty else ''}"
    context: dict[str, Any] = {"other_load": other_load, "date": str(datetime.date.today()), "commit": commit_label}
    return Cost(dataset, " ".join(overrides), source == GENERATED, **memory_report, round_s=round_s, **context)


def time_round(arguments: tuple[str, ...], rounds: int) -> float:
    """Run train.py and return the median seconds per round, without the first round."""
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, str(ROOT / "train.py"), *arguments, *QUIET, f"rounds={rounds}", f"paths.logs={logs}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        (journal,) = Path(logs).glob("runs/*/journal.jsonl")
        times = [float(json.loads(line)["time_ms"]) / 1000 for line in journal.read_text().splitlines()]
    round_seconds = sorted(after - before for before, after in pairwise(times[1:]))
    return round_seconds[len(round_seconds) // 2]


def load(overrides: list[str]) -> dict[str, int]:
    """Load and partition the data in this process; return the sizes and memory fields of `Cost`."""
    composition = compose.compose_run([*overrides[:1], "cohort=1", *overrides[1:]], ROOT / "configs")
    objects = {group: components.make_component(composition, group) for group in DATA_GROUPS}
    warm_up()
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM, the peak of memory
    before = memory("VmRSS")
    federation = load_federation(composition, objects)
    shards, rows = (federation.train, federation.val, federation.test), (federation.server_val, federation.server_test)
    tensors = [tensor for part in (*shards, *rows) for tensor in (part.x, part.y)]
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return {
        "clients": federation.n_clients,
        "samples": len(federation.train.y),
        "tensor_bytes": sum(stored.values()),
        "peak_bytes": memory("VmHWM") - before,
    }


def warm_up() -> None:
    """Read a Parquet file of one row, so that Arrow's threads and code (about 50 MB) are not counted as data."""
    with tempfile.TemporaryDirectory() as scratch:
        pq.write_table(pa.table({"x": [[0.0]], "label": [0]}), file := Path(scratch, "train.parquet"))
        read_table(file).read_arrays("x")
    release_unused_memory()


def memory(entry: str) -> int:
    """Return an entry of this process's /proc status, such as VmRSS, in bytes."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{entry}:"))
    return int(line.split()[1]) * 1024


def page(costs: list[Cost]) -> str:
    """Return the text of dataset_pace.md."""
    introduction = (
        f"Measured on {os.cpu_count()} cores, with one process of one thread. Each row is one run of `train.py` with "
        f"the dataset, the options of the second column and `{' '.join(QUIET)}`. Rounds per minute come from the "
        f"median of {ROUNDS} rounds without the first, and include the server's evaluation. Peak memory is that of a "
        "process that only loads and partitions the data, minus its memory before loading. The multiple is peak memory "
        "divided by the size of the resulting tensors. For datasets with files, 30 to 60 MB of it belong to Arrow. "
        "`other load` is the number of other processes that ran at the same time. Unavailable datasets were replaced "
        "by random data with the same layout and size (`made_data.py`), marked as generated. `python "
        "benchmarks/dataset_pace.py dataset[=folder] ...` writes this file and dataset_pace.csv, which records the "
        "commit of each row."
    )
    header = [
        "dataset",
        "options",
        "clients",
        "samples",
        "rounds per minute",
        "data, MB",
        "peak memory, MB",
        "multiple",
    ]
    header += ["other load", "date"]
    table = [header, ["---", "---", *["---:"] * (len(header) - 3), "---"], *map(format_row, costs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join(
        ["# Rounds per minute and peak memory by dataset", "", *textwrap.wrap(introduction, 120), "", *lines, ""]
    )


def format_row(cost: Cost) -> list[str]:
    """Return the cells of one dataset's row."""
    return [
        f"`{cost.dataset}`{', generated' if cost.generated else ''}",
        f"`{cost.overrides}`" if cost.overrides else "",
        f"{cost.clients:,}",
        f"{cost.samples:,}",
        "" if math.isnan(cost.round_s) else f"{60 / cost.round_s:.1f}",
        f"{cost.tensor_bytes / 1e6:,.1f}",
        f"{cost.peak_bytes / 1e6:,.1f}",
        f"{cost.peak_bytes / cost.tensor_bytes:.2f}",
        f"{cost.other_load:.1f}",
        cost.date,
    ]


def read_costs(file: Path) -> list[Cost]:
    """Return the rows of dataset_pace.csv; none if the file does not exist."""
    parsers: dict[Any, Callable[[str], Any]] = {bool: "True".__eq__, int: int, float: float, str: str}
    parse = {field.name: parsers[field.type] for field in fields(Cost)}
    lines = csv.DictReader(file.read_text().splitlines() if file.exists() else [])
    return [Cost(**{name: parse[name](text) for name, text in line.items()}) for line in lines]


def write_files(costs: list[Cost], file: Path) -> None:
    """Write table and page in the order of `MODELS_BY_DATASET`; a later row replaces one with the same options."""
    latest = {(cost.dataset, cost.overrides, cost.generated): cost for cost in costs}
    order = sorted(
        latest.values(), key=lambda cost: (list(MODELS_BY_DATASET).index(cost.dataset), math.isnan(cost.round_s))
    )
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, [field.name for field in fields(Cost)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, order))
    file.with_suffix(".md").write_text(page(order))


def main(arguments: list[str]) -> None:
    """Measure the named datasets, and replace their rows in both files."""
    sources = {dataset: source or None for dataset, _, source in (text.partition("=") for text in arguments)}
    if unknown := sorted(set(sources) - set(MODELS_BY_DATASET)):
        raise SystemExit(f"unknown dataset {', '.join(unknown)}: choose from {', '.join(MODELS_BY_DATASET)}")
    if faulty := [name for name, source in sources.items() if source is None and name not in WITHOUT_FILES]:
        raise SystemExit(f"{', '.join(faulty)} needs the folder of its files: type {faulty[0]}=FOLDER")
    if faulty := [name for name, source in sources.items() if source == GENERATED and name not in made_data.MAKERS]:
        raise SystemExit(f"{', '.join(faulty)} cannot be generated, only {', '.join(made_data.MAKERS)}")
    file = SCRIPT.with_suffix(".csv")
    for dataset, source in sources.items():
        memory_only = (SEQUENCES if source == GENERATED else FULL_SIZE).get(dataset)
        costs = [] if memory_only and source == GENERATED else [measure(dataset, MODELS_BY_DATASET[dataset], source)]
        if memory_only:
            costs.append(measure(dataset, memory_only, source, rounds=0))
        write_files([*read_costs(file), *costs], file)
        sys.stdout.write("".join(f"{cost}\n" for cost in costs))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        sys.stdout.write(json.dumps(load(sys.argv[2:])))
    else:
        main(sys.argv[1:])
