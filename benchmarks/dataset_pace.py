"""What each dataset costs by default: rounds a minute, and memory while it is loaded.

    python benchmarks/dataset_pace.py [word=folder ...]     writes dataset_pace.md

    python benchmarks/dataset_pace.py cifar10=data/cifar10 shakespeare=data/shakespeare reddit=data/reddit

Of a word the default federation is trained for some rounds through train.py, with a network that fits (`FITTING`);
those that need no files are always there. Memory is that of a process which does nothing but load and deal the data,
above what it had before; the multiple is that over the bytes of all tensors that come of it.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fedcohort.dataset import folder, leaf, pictures  # noqa: F401  what loading and dealing import is there before
from fedcohort.dataset.table import give_back, read
from fedcohort.startup import assemble, compose, split  # noqa: F401
from fedcohort.startup.dealt import PARTS, deal

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
ROUNDS = 5
OWN = ("clients=null",)  # the clients that the data have
FITTING: dict[str, tuple[str, ...]] = {
    "digits": (),
    "synthetic": ("client.lr=0.01", "model=logreg"),
    "mnist": ("model=cnn",),
    "fashion_mnist": ("model=cnn",),
    "emnist": ("model=cnn",),
    "cifar10": ("model=resnet8_gn",),
    "cifar100": ("model=resnet8_gn",),
    "cmnist": ("model=cnn",),
    "femnist": (*OWN, "model=cnn_leaf_femnist", "client.batch=10"),
    "celeba": (*OWN, "model=cnn_leaf_celeba", "client.batch=10"),
    "uci_har": (*OWN, "cohort=5", "model=har_cnn", "client.batch=10", "client.lr=0.005"),
    "shakespeare": (*OWN, "dataset.test=given", "dataset.users=0.05", "dataset.step=5", "model=char_lstm"),
    "reddit": (*OWN, "model=word_lstm", "client.clip=5", "client.lr=2"),
    "waterbirds": ("dataset.size=64", "heterogeneity=iid", "model=cnn"),
    "spawrious": ("dataset.size=64", "heterogeneity=iid", "model=cnn"),
}
WHOLE: dict[str, tuple[str, ...]] = {  # of which the row above has a part: loaded alone, a round takes minutes
    "shakespeare": (*OWN, "dataset.test=given", "model=char_lstm"),
}
FREE = ("digits", "synthetic")
QUIET = ("logger=none", "callback.figures=null", "eval.clients_every=0")


@dataclass(frozen=True)
class Cost:
    """Of one dataset. round_s: median of the rounds, None where none were run.

    held, peak: bytes of the tensors, and of memory while loading.
    """

    word: str
    words: tuple[str, ...]
    clients: int
    samples: int
    round_s: float | None
    held: int
    peak: int


def measured(word: str, words: tuple[str, ...], rounds: int = ROUNDS) -> Cost:
    """The cost of a dataset, in processes of their own; rounds: 0 for memory alone."""
    typed = (f"dataset={word}", *words)
    round_s = time_of_round(typed, rounds) if rounds else None
    command = [sys.executable, str(HERE), "--load", *typed]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return Cost(word, words, found["clients"], found["samples"], round_s, found["held"], found["peak"])


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
    composition = compose.run_of([*words[:1], "cohort=1", *words[1:]], ROOT / "configs")
    objects = {group: assemble.part(composition, group) for group in PARTS}
    warm_up()
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before = memory("VmRSS")
    held = deal(composition, objects)
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


def page(costs: list[Cost], load: float) -> str:
    """dataset_pace.md. load: the most processes, beside the benchmark's own, that wanted to run in a minute."""
    busy = f", with others at work on it (up to {load:.1f} beside its own)" if load > 0.5 else ""
    about = (
        f"{datetime.date.today()}, {os.cpu_count()} cores{busy}; one process of one thread. Each row is one run of "
        f"`train.py dataset=<word>` with the words beside it and `{' '.join(QUIET)}`: the median of {ROUNDS} rounds "
        "but the first, the server's evaluation included. Memory while loading is the most beyond what there was "
        "before, in a process that loads and deals the data and does nothing else; the multiple is that over the "
        "tensors of it; some 30 to 60 MB of it are Arrow's, where there are files. "
        "`python benchmarks/dataset_pace.py word=folder ...` writes this file."
    )
    head = ["dataset", "with", "clients", "samples", "rounds a minute", "MB of data", "MB while loading", "multiple"]
    table = [head, ["---", "---", *["---:"] * (len(head) - 2)], *(row(cost) for cost in costs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    return "\n".join(["# What each dataset costs", "", *textwrap.wrap(about, 120), "", *lines, ""])


def row(cost: Cost) -> list[str]:
    """The cells of one dataset; whose folder it was is left out."""
    words = " ".join(word for word in cost.words if not word.startswith("dataset.path="))
    return [
        f"`{cost.word}`",
        f"`{words}`" if words else "",
        f"{cost.clients:,}",
        f"{cost.samples:,}",
        "" if cost.round_s is None else f"{60 / cost.round_s:.1f}",
        f"{cost.held / 1e6:,.1f}",
        f"{cost.peak / 1e6:,.1f}",
        f"{cost.peak / cost.held:.2f}",
    ]


def main(given: list[str]) -> None:
    folders = dict(word.split("=", 1) for word in given)
    if unknown := sorted(set(folders) - set(FITTING)):
        raise SystemExit(f"{', '.join(unknown)}: name datasets out of {', '.join(FITTING)}, as in mnist=data/mnist")
    load, costs = 0.0, []
    for word in (*FREE, *(word for word in FITTING if word in folders)):
        path = (f"dataset.path={Path(folders[word]).absolute()}",) if word in folders else ()
        costs.append(measured(word, (*path, *FITTING[word])))
        if word in WHOLE:
            costs.append(measured(word, (*path, *WHOLE[word]), rounds=0))
        load = max(load, os.getloadavg()[0] - 1)
        sys.stdout.write(f"{costs[-1]}\n")
    HERE.with_suffix(".md").write_text(page(costs, load))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        sys.stdout.write(json.dumps(load(sys.argv[2:])))
    else:
        main(sys.argv[1:])
