"""What each dataset costs by default: rounds a minute, and memory while it is loaded.

    python benchmarks/dataset_pace.py word[=folder] [...]     writes dataset_pace.csv and dataset_pace.md

    python benchmarks/dataset_pace.py digits synthetic cifar10=data/cifar10 shakespeare=data/shakespeare reddit=made

Of a word the default federation is trained for some rounds through train.py, with a network that fits (`FITTING`).
`made` in place of a folder: data of the true layout and size with nothing in them (`made_data.py`). Memory is that of
a process which does nothing but load and deal the data, above what it had before; the multiple is that over the bytes
of all tensors that come of it. Rows of words that aren't named stay as they are.
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
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import made_data
from fedcohort.dataset import folder, leaf, pictures  # noqa: F401  what loading and dealing import is there before
from fedcohort.dataset.files import give_back, read
from fedcohort.record import provenance
from fedcohort.startup import components, compose, split  # noqa: F401
from fedcohort.startup.load import PARTS, load_federation

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
ROUNDS = 5
OWN = ("clients=null",)  # the clients that the data have
FITTING: dict[str, tuple[str, ...]] = {
    "digits": (),
    "synthetic": ("client.lr=0.01", "model=logreg"),
    "mnist": ("model=cnn",),
    "fashion_mnist": ("model=cnn",),
    "emnist": ("clients=500", "model=cnn"),  # with 50, as elsewhere, a round would be ten times MNIST's
    "cifar10": ("model=resnet8_gn",),
    "cifar100": ("heterogeneity=iid", "model=resnet8_gn"),
    "cmnist": ("model=cnn",),
    "femnist": (*OWN, "model=cnn_leaf_femnist", "client.batch=10"),
    "celeba": (*OWN, "model=cnn_leaf_celeba", "client.batch=10"),
    "uci_har": (*OWN, "cohort=5", "model=har_cnn", "client.batch=10", "client.lr=0.005"),
    "shakespeare": (*OWN, "dataset.test=given", "dataset.users=0.05", "dataset.step=5", "model=char_lstm"),
    "reddit": (*OWN, "model=word_lstm", "client.clip=5", "client.lr=2"),
    "waterbirds": ("dataset.size=64", "heterogeneity=iid", "model=cnn"),
    "spawrious": ("clients=1000", "dataset.size=64", "heterogeneity=iid", "model=cnn"),  # as EMNIST's 500
}
WHOLE: dict[str, tuple[str, ...]] = {  # of which the row above has a part: loaded alone, a round takes minutes
    "shakespeare": (*OWN, "dataset.test=given", "model=char_lstm"),
}
SEQUENCES = {"shakespeare": (*OWN, "model=char_lstm")}  # as LEAF prepares them, made up: loaded alone, too
FREE = ("digits", "synthetic")
MADE = "made"
QUIET = ("logger=none", "callback.figures=null", "eval.clients_every=0")


@dataclass(frozen=True)
class Cost:
    """Of one dataset, a line of dataset_pace.csv.

    words: beside the dataset's, but where its files are. made: whether its data were made up.
    round_s: median of the rounds, nan where none were run. held, peak: bytes of the tensors, of memory while loading.
    beside: processes, beside the benchmark's own, that wanted to run in the last minute.
    """

    word: str
    words: str
    made: bool
    clients: int
    samples: int
    round_s: float
    held: int
    peak: int
    beside: float
    on: str
    commit: str


def measured(word: str, words: tuple[str, ...], source: str | None, rounds: int = ROUNDS) -> Cost:
    """The cost of a dataset, in processes of their own.

    source: the folder of its data, MADE, or None where it needs none. rounds: 0 for memory alone.
    """
    with tempfile.TemporaryDirectory() as made:
        if source == MADE:
            made_data.make(word, Path(made))
        path = () if source is None else (f"dataset.path={made if source == MADE else Path(source).absolute()}",)
        typed = (f"dataset={word}", *path, *words)
        round_s = time_of_round(typed, rounds) if rounds else math.nan
        command = [sys.executable, str(HERE), "--load", *typed]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    beside = round(max(0.0, os.getloadavg()[0] - 1), 1)
    commit, dirty = provenance.current_commit()
    traced = f"{commit[:10]}{' with uncommitted changes' if dirty else ''}"
    today = str(datetime.date.today())
    return Cost(word, " ".join(words), source == MADE, **found, round_s=round_s, beside=beside, on=today, commit=traced)


def time_of_round(typed: tuple[str, ...], rounds: int) -> float:
    """Seconds of the middle one of so many rounds but the first."""
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, str(ROOT / "train.py"), *typed, *QUIET, f"rounds={rounds}", f"paths.logs={logs}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        (journal,) = Path(logs).glob("runs/*/journal.jsonl")
        times = [float(json.loads(line)["time_ms"]) / 1000 for line in journal.read_text().splitlines()]
    took = sorted(after - before for before, after in pairwise(times[1:]))
    return took[len(took) // 2]


def load(words: list[str]) -> dict[str, int]:
    """Load and deal the data, and nothing else; bytes of the tensors, and of memory beyond what there was before."""
    composition = compose.compose_run([*words[:1], "cohort=1", *words[1:]], ROOT / "configs")
    objects = {group: components.make(composition, group) for group in PARTS}
    warm_up()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before = memory("VmRSS")
    held = load_federation(composition, objects)
    shards, rows = (held.train, held.val, held.test), (held.server_val, held.server_test)
    tensors = [tensor for part in (*shards, *rows) for tensor in (part.x, part.y)]
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return {
        "clients": held.n_clients,
        "samples": len(held.train.y),
        "held": sum(stored.values()),
        "peak": memory("VmHWM") - before,
    }


def warm_up() -> None:
    """Read a Parquet file of one row: Arrow's own threads and code, some 50 MB, are no data's."""
    with tempfile.TemporaryDirectory() as made:
        pq.write_table(pa.table({"x": [[0.0]], "label": [0]}), file := Path(made, "train.parquet"))
        read(file).arrays("x")
    give_back()


def memory(entry: str) -> int:
    """A line of this process's status, in bytes."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{entry}:"))
    return int(line.split()[1]) * 1024


def page(costs: list[Cost]) -> str:
    """dataset_pace.md."""
    about = (
        f"{os.cpu_count()} cores; one process of one thread. Each row is one run of `train.py dataset=<word>` with the "
        f"words beside it and `{' '.join(QUIET)}`: the median of {ROUNDS} rounds but the first, the server's "
        "evaluation included. Memory while loading is the most beyond what there was before, in a process that loads "
        "and deals the data and does nothing else; the multiple is that over the tensors of it; some 30 to 60 MB are "
        "Arrow's, where there are files. `others` are the processes that were at work beside it. Data that were not at "
        "hand were made up, in the true layout and size (`made_data.py`). `python benchmarks/dataset_pace.py "
        "word[=folder] ...` writes this file, and dataset_pace.csv, which has each row's commit."
    )
    head = ["dataset", "with", "clients", "samples", "rounds a minute", "MB of data", "MB while loading", "multiple"]
    head += ["others", "on"]
    table = [head, ["---", "---", *["---:"] * (len(head) - 3), "---"], *map(row, costs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join(["# What each dataset costs", "", *textwrap.wrap(about, 120), "", *lines, ""])


def row(cost: Cost) -> list[str]:
    """The cells of one dataset."""
    return [
        f"`{cost.word}`{', made up' if cost.made else ''}",
        f"`{cost.words}`" if cost.words else "",
        f"{cost.clients:,}",
        f"{cost.samples:,}",
        "" if math.isnan(cost.round_s) else f"{60 / cost.round_s:.1f}",
        f"{cost.held / 1e6:,.1f}",
        f"{cost.peak / 1e6:,.1f}",
        f"{cost.peak / cost.held:.2f}",
        f"{cost.beside:.1f}",
        cost.on,
    ]


def kept(file: Path) -> list[Cost]:
    """The rows of dataset_pace.csv."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [_as_typed(line) for line in csv.DictReader(lines)]


def _as_typed(line: Mapping[str, str]) -> Cost:
    read_as: dict[Any, Callable[[str], Any]] = {bool: "True".__eq__, int: int, float: float, str: str}
    return Cost(**{each.name: read_as[each.type](line[each.name]) for each in fields(Cost)})


def write(costs: list[Cost], file: Path) -> None:
    """Both files, in the order of FITTING; of two rows of the same dataset and words the last one counts."""
    last = {(cost.word, cost.words, cost.made): cost for cost in costs}
    order = sorted(last.values(), key=lambda cost: (list(FITTING).index(cost.word), math.isnan(cost.round_s)))
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, [each.name for each in fields(Cost)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, order))
    file.with_suffix(".md").write_text(page(order))


def main(given: list[str]) -> None:
    sources = {word: source or None for word, _, source in (text.partition("=") for text in given)}
    if unknown := sorted(set(sources) - set(FITTING)):
        raise SystemExit(f"{', '.join(unknown)}: name datasets out of {', '.join(FITTING)}, as in mnist=data/mnist")
    if bare := sorted(word for word, source in sources.items() if source is None and word not in FREE):
        raise SystemExit(
            f"{', '.join(bare)}: say where its files are, as in mnist=data/mnist; {', '.join(FREE)} have none"
        )
    if bare := sorted(word for word, source in sources.items() if source == MADE and word not in made_data.MAKERS):
        raise SystemExit(f"{', '.join(bare)}: nothing is made up but {', '.join(made_data.MAKERS)}")
    file = HERE.with_suffix(".csv")
    for word, source in sources.items():
        alone = (SEQUENCES if source == MADE else WHOLE).get(word)
        costs = [] if alone and source == MADE else [measured(word, FITTING[word], source)]
        if alone:
            costs.append(measured(word, alone, source, rounds=0))
        write([*kept(file), *costs], file)
        sys.stdout.write("".join(f"{cost}\n" for cost in costs))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        sys.stdout.write(json.dumps(load(sys.argv[2:])))
    else:
        main(sys.argv[1:])
