"""Start-up time, round time and peak memory of train.py for 1,000 to 1,000,000 clients.

    python benchmarks/growth.py                    writes growth.md, for 1,000 to 1,000,000 clients
    python benchmarks/growth.py 1000 10000         writes it for these populations only

Each client has 10 samples of 20 features in 10 classes. The data's column `client` defines the clients, and 100 of them
train logistic regression in a round. The server has 1,000 test rows. Clients are not evaluated, and the server
evaluates only at the start and the end, because its share of the data grows with the population.
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

from fedcohort.host.processor import name_processor

SCRIPT = Path(__file__).resolve()
POPULATIONS = (1_000, 10_000, 100_000, 1_000_000)
SAMPLES, FEATURES, CLASSES, ROUNDS = 10, 20, 10, 30
ROW_BYTES = 4 * FEATURES + 8  # float32 inputs and an int64 label
CLIENTS_PER_ROW_GROUP = 50_000  # clients per row group
OVERRIDES = (
    *("dataset=folder", "dataset.client=client", "dataset.test=server", "heterogeneity=natural", "clients=null"),
    *("model=logreg", "cohort=100", f"rounds={ROUNDS}", f"eval.every={ROUNDS}", "eval.clients_every=0"),
    *("logger=none", "callback.figures=null"),
)

NOTES = (
    "Round time grows mostly because three random numbers are drawn for every client: for the cohort, for the uniform "
    "reference cohort and for the latencies. The generator is keyed by the round, so that one client's number does not "
    "depend on the other clients. With a million clients each draw takes a tenth of a round. The counts of selections, "
    "real and expected under uniform sampling, are copied in every round. For a million clients they take 24 MB of "
    "each checkpoint (checkpoint.every_s).",
    "selector=feddiverse asks every client once to train one network per class and one for the attribute, 5 epochs "
    "each. This takes about 0.1 s per client here, which is more than a day for a million clients. The method requires "
    "this work, and selector.pretrain delays it.",
    "The time to evaluate all clients is proportional to the population. eval.clients_sample=1000 evaluates 1,000 "
    "clients, the same ones for every selector.",
)


@dataclass(frozen=True)
class Cost:
    """Cost of one run.

    Attributes:
        clients: size of the population.
        start_s: seconds from the command to the journal's line on the initial model.
        round_s: median seconds per round, without the first.
        peak: peak memory, in bytes.
        data: inputs and labels of the training rows, in bytes.
    """

    clients: int
    start_s: float
    round_s: float
    peak: int
    data: int


def write_population(folder: Path, clients: int) -> None:
    """Write the population to train.parquet and test.parquet; each class is a normal distribution."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, FEATURES))

    def table(owner: np.ndarray) -> pa.Table:
        y = rng.integers(0, CLASSES, len(owner))
        x = (centres[y] + rng.normal(size=(len(y), FEATURES))).astype(np.float32)
        return pa.table({**{f"x{j}": x[:, j] for j in range(FEATURES)}, "label": y, "client": owner})

    pq.write_table(table(np.zeros(1000, dtype=np.int64)), folder / "test.parquet")
    first_clients = range(0, clients, CLIENTS_PER_ROW_GROUP)
    owners = (
        np.repeat(np.arange(first, min(first + CLIENTS_PER_ROW_GROUP, clients)), SAMPLES) for first in first_clients
    )
    tables = (table(owner) for owner in owners)
    first_table = next(tables)
    with pq.ParquetWriter(folder / "train.parquet", first_table.schema) as writer:
        writer.write_table(first_table)
        for table_of_clients in tables:
            writer.write_table(table_of_clients)


def measure_run(clients: int) -> Cost:
    """Run train.py with a population of `clients` in a new process and return the cost."""
    with tempfile.TemporaryDirectory() as scratch:
        data, logs = Path(scratch) / "data", Path(scratch) / "logs"
        data.mkdir()
        write_population(data, clients)
        command = [sys.executable, str(SCRIPT.parents[1] / "train.py"), *OVERRIDES]
        command += [f"dataset.path={data}", f"paths.logs={logs}"]
        start_s = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"train.py with {clients} clients failed with exit code {process.returncode}")
        (journal,) = logs.glob("runs/*/journal.jsonl")
        times = [json.loads(line)["time_ms"] / 1000 for line in journal.read_text().splitlines()]
    rounds = [after - before for before, after in pairwise(times[1:])]
    size = clients * SAMPLES * ROW_BYTES
    return Cost(clients, times[0] - start_s, statistics.median(rounds), usage.ru_maxrss * 1024, size)


def page(costs: list[Cost], load: float) -> str:
    """Return the text of growth.md. `load` is the load average of the last minute before the first run."""
    first = costs[0]
    load_note = f", with other processes running (load average {load:.1f} before the first run)" if load > 0.5 else ""
    introduction = (
        f"{datetime.date.today()}, {os.cpu_count()} cores of {name_processor()}{load_note}. Each row is one run of "
        f"`train.py {' '.join(OVERRIDES)}`. A client has {SAMPLES} samples of {FEATURES} features. Start-up lasts "
        "from the command to the first line of the journal. It includes imports, reading the data and the evaluation "
        "of the initial model. Round time is the median without the first round. Data are the inputs (float32) and "
        "labels (int64) of the training rows. The multiple is the additional peak memory divided by the additional "
        f"data, both compared with the run of {first.clients:,} clients. `make bench-growth` writes this file."
    )
    header = ["clients", "start-up, s", "ratio", "round, ms", "ratio", "peak memory, MB", "data, MB", "multiple"]
    table = [header, ["---:"] * len(header), *(format_row(cost, first) for cost in costs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    command = ["    python benchmarks/growth.py", ""]
    return "\n".join(
        [
            "# Run time and peak memory by number of clients",
            "",
            *command,
            *textwrap.wrap(introduction, 120, break_on_hyphens=False),
            "",
            *lines,
            *(line for note in NOTES for line in ("", *textwrap.wrap(note, 120, break_on_hyphens=False))),
            "",
        ]
    )


def format_row(cost: Cost, first: Cost) -> list[str]:
    """Return the cells of one run's row; ratios compare it with the smallest population."""
    extra_data = cost.data - first.data
    return [
        f"{cost.clients:,}",
        f"{cost.start_s:.1f}",
        f"{cost.start_s / first.start_s:.1f}",
        f"{1000 * cost.round_s:.0f}",
        f"{cost.round_s / first.round_s:.2f}",
        f"{cost.peak / 1e6:,.0f}",
        f"{cost.data / 1e6:,.0f}",
        f"{(cost.peak - first.peak) / extra_data:.2f}" if extra_data else "",
    ]


def main(populations: list[int]) -> None:
    """Measure a run with each population, and write the page."""
    load = os.getloadavg()[0]
    costs = []
    for clients in populations:
        costs.append(measure_run(clients))
        sys.stdout.write(f"{costs[-1]}\n")
    SCRIPT.with_suffix(".md").write_text(page(costs, load))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or list(POPULATIONS))
