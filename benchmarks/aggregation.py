"""`make bench-aggregation`: what aggregating costs, against one weighted sum of the same updates in the same process.

python benchmarks/aggregation.py [words]   writes benchmarks/aggregation.md; with words it prints their rows alone
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import textwrap
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.agg.base import Aggregator, Arrived
from fedcohort.flat import Block, Layout
from fedcohort.hook import averaged_uploads, stored_vector_sizes
from fedcohort.host.memory import keep_freed_memory
from fedcohort.round.collect import CollectOptions, Collector
from fedcohort.round.collected import Collected
from fedcohort.types import ClientUpdate, Population, RoundOutcome, Selection, Signals

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs" / "agg"
CLIENTS, PARAMETERS, REPEATS = 100, 1_000_000, 5
SUM, GRAM = 2.0, 10.0  # goals: times the weighted sum, for a sum and for a Gram matrix
BY_GRAM = {"fedmgda_plus"}
LEARNERS = {"feddf", "rhfl"}  # they train networks on the server: no algebra of updates


def words() -> list[str]:
    """Those with a part of their own: an alias is a composition."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml") if "_target_" in OmegaConf.load(path))


@cache
def common() -> torch.Tensor:
    """What all clients want."""
    return torch.randn(PARAMETERS, generator=torch.Generator().manual_seed(CLIENTS))


def update_of(client: int, agg: Aggregator[Any]) -> ClientUpdate:
    rng = torch.Generator().manual_seed(client)
    delta = 0.1 * common() + 0.1 * torch.randn(PARAMETERS, generator=rng)
    return ClientUpdate(
        client=client,
        n_train=20 + client,
        n_used=20 + client,
        steps=5 + client % 3,
        response=5.0 + client % 3,
        units_done=1,
        units_asked=1,
        lr=0.1,
        vector=delta,
        buffers=torch.empty(0),
        counters=torch.empty(0, dtype=torch.int64),
        uploads={name: delta for hook in agg.hooks for name in hook.uploads},
        stored={},
        batch_loss=np.ones(5),
        batch_size=np.full(5, 4),
        sample_loss=np.ones(20 + client),
    )


def collected(agg: Aggregator[Any], updates: list[ClientUpdate]) -> Collected:
    n = np.array([update.n_used for update in updates])
    options = CollectOptions(
        uploads=[name for hook in agg.hooks for name in hook.uploads],
        averaged=averaged_uploads(agg.hooks),
        remembers=stored_vector_sizes(agg.hooks, PARAMETERS, int(n.max())),
        stacked=agg.stacked,
    )
    layout = Layout((Block("w", (PARAMETERS,), 0),), (), ())
    collector = Collector(layout, np.arange(CLIENTS), agg.weights(n, n), options)
    for update in updates:
        collector.add(update)
    return collector.finish(lambda tensor: tensor, lambda tensor: tensor)


def arrived(agg: Aggregator[Any], found: Collected) -> Arrived:
    rng, nobody = np.random.default_rng(0), np.empty(0, dtype=np.int64)
    told = Signals({word: 0.1 + rng.random(CLIENTS) for word in sorted(agg.needs)}, agg.needs, "the aggregator")
    outcome = RoundOutcome(0, Selection(found.clients), found.clients, nobody, told, {}, 1.0)
    if found.mean is None:
        raise ValueError("nobody arrived")
    return Arrived(outcome, found.mean, found.totals, found.weights, found.updates, found.client_buffers)


def one(word: str) -> None:
    """One process's measurement, as JSON: seconds of the weighted sum, of gathering, and of the direction."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as every run does
    agg = instantiate(OmegaConf.load(CONFIGS / f"{word}.yaml"), _convert_="all")
    updates = [update_of(client, agg) for client in range(CLIENTS)]
    matrix = torch.stack([update.delta for update in updates]).double()
    weights = torch.full((CLIENTS,), 1 / CLIENTS, dtype=torch.float64)
    needs = Signals(dict.fromkeys(agg.needs, np.ones(CLIENTS)), agg.needs, "the aggregator")
    state = agg.init(Population(CLIENTS, 10, CLIENTS, needs), PARAMETERS)
    times: dict[str, list[float]] = {"sum": [], "gather": [], "direction": []}
    for _ in range(REPEATS + 1):
        marks = [time.perf_counter()]
        weights @ matrix
        marks.append(time.perf_counter())
        found = collected(agg, updates)
        marks.append(time.perf_counter())
        agg.direction(state, arrived(agg, found))
        marks.append(time.perf_counter())
        for name, took in zip(times, np.diff(marks), strict=True):
            times[name].append(float(took))
        del found
    result = {name: statistics.median(took[1:]) for name, took in times.items()} | {
        "stacked": agg.stacked,
        "vectors": 1 + sum(len(hook.uploads) for hook in agg.hooks),
    }
    sys.stdout.write("RESULT " + json.dumps(result) + "\n")


def row(word: str) -> str:
    if word in LEARNERS:
        return f"| `{word}` | trains on the server | - | - | - | - | - |"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, "one", word], capture_output=True, text=True, check=True, env=env)
    found = json.loads(done.stdout.split("RESULT ")[-1])
    kind, goal = ("Gram matrix", GRAM) if word in BY_GRAM else ("weighted sum", SUM)
    made_of = "matrix" if found["stacked"] else "stream" + (" of 2" if found["vectors"] == 2 else "")
    goal *= found["vectors"]
    alone, whole = (took / found["sum"] for took in (found["direction"], found["gather"] + found["direction"]))
    over = " (over)" if (alone if found["stacked"] else whole) > goal else ""
    times = [f"{1000 * found[name]:.0f}" for name in ("sum", "gather", "direction")]
    return f"| `{word}` | {kind}, {made_of} | {' | '.join(times)} | {alone:.1f} | {whole:.1f}{over} |"


def paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


def main() -> None:
    lines = [
        "# Aggregation itself",
        "",
        paragraph(
            f"""{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, torch
            {torch.__version__}; one thread; {CLIENTS} updates of {PARAMETERS:,} parameters, float32 as they come,
            aggregated in float64. `sum` is `weights @ matrix` of the updates in float64, in the same process; `gather`
            takes updates in, one by one, checks that they are finite and adds them up, into a matrix too where the
            method needs it; `direction` is the method. Goals: {SUM:.0f} sums for each vector that a client sends,
            {GRAM:.0f} with a Gram matrix, of `gather` and `direction` where the sum is made while gathering, of
            `direction` where it is made
            of the matrix. Medians of {REPEATS}. `make bench-aggregation` writes this file."""
        ),
        "",
        "| aggregator | what it is | sum, ms | gather, ms | direction, ms | direction / sum | all / sum |",
        "|---|---|---|---|---|---|---|",
        *(row(word) for word in words()),
    ]
    text = "\n".join(lines) + "\n"
    (HERE / "aggregation.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2])
    elif len(sys.argv) > 1:
        sys.stdout.write("".join(f"{row(word)}\n" for word in sys.argv[1].split(",")))
    else:
        main()
