"""How the cost of a run grows with its population: its start, its memory and its rounds, through train.py.

    python benchmarks/growth.py                    writes growth.md, for 1,000 to 1,000,000 clients
    python benchmarks/growth.py 1000 10000         of these populations alone

A client has 10 samples of 20 features, in 10 classes; the clients are those of the data's own column, 100 of them train
in a round, the model is logistic regression, and 1,000 test rows are the server's. Clients are not evaluated, and the
server evaluates at the start and the end alone: its share of the data grows with the data.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve()
POPULATIONS = (1_000, 10_000, 100_000, 1_000_000)
SAMPLES, FEATURES, CLASSES, ROUNDS = 10, 20, 10, 30
ROW_BYTES = 4 * FEATURES + 8  # float32 inputs and an int64 label
PIECE = 50_000  # clients that are written at a time
WORDS = (
    *("dataset=folder", "dataset.client=client", "dataset.test=server", "heterogeneity=natural", "clients=null"),
    *("model=logreg", "cohort=100", f"rounds={ROUNDS}", f"eval.every={ROUNDS}", "eval.clients_every=0"),
    *("logger=none", "callback.figures=null"),
)

NOTES = (
    "What grows in a round is mostly three draws of a number for everybody, keyed by the round so that no client's "
    "depends on who else is asked: the cohort's keys, those of the cohort of chance, the latencies. A million of each "
    "take 5 to 6 ms here. Counts of who was selected, and what chance would have selected, "
    "are copied once a round, and are 24 MB of each checkpoint (checkpoint.every_s).",
    "selector=feddiverse asks every client once to train networks of its own, one for each of its classes and one for "
    "the attribute, 5 epochs each: about 0.1 s a client here, which is more than a day for a million. That is the "
    "method's work, not its bookkeeping: selector.pretrain puts it off, and nothing in the bench shortens it.",
    "Evaluations of all clients are as long as the population: eval.clients_sample=1000 makes them of 1,000, the same "
    "whatever the selector.",
)


@dataclass(frozen=True)
class Cost:
    """Of one run. start_s: from the command to w_0's line in the journal. round_s: median of the rounds but the first.

    peak: bytes of memory at most. data: bytes of the training rows' inputs and labels.
    """

    clients: int
    start_s: float
    round_s: float
    peak: int
    data: int


def write(folder: Path, clients: int) -> None:
    """The population as train.parquet and test.parquet: classes are a normal distribution each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, FEATURES))

    def table(owner: np.ndarray) -> pa.Table:
        y = rng.integers(0, CLASSES, len(owner))
        x = (centres[y] + rng.normal(size=(len(y), FEATURES))).astype(np.float32)
        return pa.table({**{f"x{j}": x[:, j] for j in range(FEATURES)}, "label": y, "client": owner})

    pq.write_table(table(np.zeros(1000, dtype=np.int64)), folder / "test.parquet")
    firsts = range(0, clients, PIECE)
    pieces = (np.repeat(np.arange(first, min(first + PIECE, clients)), SAMPLES) for first in firsts)
    whole = (table(owner) for owner in pieces)
    first = next(whole)
    with pq.ParquetWriter(folder / "train.parquet", first.schema) as writer:
        writer.write_table(first)
        for each in whole:
            writer.write_table(each)


def measured(clients: int) -> Cost:
    """The cost of a run with so many clients, in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        data, logs = Path(scratch) / "data", Path(scratch) / "logs"
        data.mkdir()
        write(data, clients)
        command = [sys.executable, str(HERE.parents[1] / "train.py"), *WORDS]
        command += [f"dataset.path={data}", f"paths.logs={logs}"]
        began = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"the run with {clients} clients ended with exit code {process.returncode}")
        (journal,) = logs.glob("runs/*/journal.jsonl")
        times = [json.loads(line)["time_ms"] / 1000 for line in journal.read_text().splitlines()]
    rounds = [after - before for before, after in pairwise(times[1:])]
    size = clients * SAMPLES * ROW_BYTES
    return Cost(clients, times[0] - began, statistics.median(rounds), usage.ru_maxrss * 1024, size)


def page(costs: list[Cost], load: float) -> str:
    """growth.md. load: of the machine before the first run, processes that wanted to run in the last minute."""
    first = costs[0]
    busy = f", with others at work on it (load {load:.1f} before the first run)" if load > 0.5 else ""
    about = (
        f"{datetime.date.today()}, {os.cpu_count()} cores{busy}. Each row is one run of `train.py {' '.join(WORDS)}`. "
        f"A client has {SAMPLES} samples of {FEATURES} features. The start is from the command to the first line of "
        "the journal: imports, reading, and the evaluation of the untrained model included. A round is the median of "
        "all but the first. Data are the training rows' inputs (float32) and labels (int64); the multiple is memory "
        f"beyond that of the run with {first.clients:,} clients, over the data beyond its. "
        "`make bench-growth` writes this file."
    )
    head = ["clients", "s until round 1", "ratio", "ms a round", "ratio", "MB at most", "MB of data", "multiple"]
    table = [head, ["---:"] * len(head), *(_row(cost, first) for cost in costs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    command = ["    python benchmarks/growth.py", ""]
    return "\n".join(
        [
            "# What a larger population costs",
            "",
            *command,
            *textwrap.wrap(about, 120, break_on_hyphens=False),
            "",
            *lines,
            *(line for note in NOTES for line in ("", *textwrap.wrap(note, 120, break_on_hyphens=False))),
            "",
        ]
    )


def _row(cost: Cost, first: Cost) -> list[str]:
    more = cost.data - first.data
    return [
        f"{cost.clients:,}",
        f"{cost.start_s:.1f}",
        f"{cost.start_s / first.start_s:.1f}",
        f"{1000 * cost.round_s:.0f}",
        f"{cost.round_s / first.round_s:.2f}",
        f"{cost.peak / 1e6:,.0f}",
        f"{cost.data / 1e6:,.0f}",
        f"{(cost.peak - first.peak) / more:.2f}" if more else "",
    ]


def main(populations: list[int]) -> None:
    load = os.getloadavg()[0]
    costs = []
    for clients in populations:
        costs.append(measured(clients))
        sys.stdout.write(f"{costs[-1]}\n")
    HERE.with_suffix(".md").write_text(page(costs, load))


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or list(POPULATIONS))
