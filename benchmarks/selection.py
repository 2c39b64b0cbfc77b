"""Time per round of each selector, without training: the signals that it queries have random values.

python benchmarks/selection.py             writes benchmarks/selection.md (`make bench-selection`)
python benchmarks/selection.py powd,oort   prints the rows of these selectors only
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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.rng import new_generator
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Derived, RawUpdate, Reported, Static, find_signal
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Signals

FOLDER = Path(__file__).parent
CONFIGS = FOLDER.parent / "configs" / "selector"
COHORT, CLASSES, EPOCHS = 10, 10, 5
SIZES = (3550, 100_000)
GOALS = {3550: 5.0, 100_000: 150.0}  # milliseconds per round
ROUNDS, WARM_UP = 23, 3  # the first rounds query all clients and import modules
WIDTHS = {"label_counts": CLASSES, "group_counts": 2 * CLASSES, "dht": 3, "compressed_gradient": 23, "update": 1000}
WIDTHS |= {"gradient_moments": 1001, "output_layer": 65 * CLASSES}
# FedCor's warm-up ends before the timed rounds; oracles reject so many clients by default.
OPTIONS = {"fedcor": {"warmup": 1}, "oracle_greedy": {"limit": SIZES[-1]}, "worst": {"limit": SIZES[-1]}}
NO_GOAL = {
    "divfl",
    "fedcor",
    "hcsfed",
    "hics_fl",
    "neural_bandit",
}  # not linear in the clients: see the note below the table
LARGEST = {"divfl": 3550, "fedcor": 3550, "hics_fl": 3550}  # clients: memory is quadratic
GROWTH = {"fedcor": (250, 500, 1000, 2000, 4000), "hcsfed": (1000, 3550, 10_000, 30_000, 100_000)}
FEDPNS = (50, 2_200_000)  # clients, parameters


def list_selectors() -> list[str]:
    """Return the options of the group `selector`, sorted."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def make_selector(name: str, **changes: object) -> Selector[Any]:
    """Return a selector with the options of its yaml file; an alias is its base with other options."""
    options: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{name}.yaml"))
    if "_target_" not in options:
        base_name = options["defaults"][0].split("@")[0]
        base_options: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{base_name}.yaml"))
        options = {**base_options, **options["selector"]}
    selector: Selector[Any] = instantiate({**options, **OPTIONS.get(name, {}), **changes}, _convert_="all")
    return selector


@dataclass(frozen=True)
class World:
    """Clients with random signals; `widths` has the length of each signal that is a vector."""

    clients: int
    cohort: int
    widths: dict[str, int]

    def values(self, signal_name: str, round: int, count: int) -> np.ndarray:
        """Return positive random values of a signal, [count] or [count, width]; integers if the signal is a count."""
        d = self.widths.get(signal_name)
        rng = new_generator(0, f"bench/{signal_name}", round)
        numbers = 0.1 + rng.random(count if d is None else (count, d))
        if signal_name == "compressed_gradient":  # clusters of clients, like those of skewed data
            numbers += 2 * rng.random((CLASSES, numbers.shape[1]))[np.arange(count) % CLASSES]
        is_count = signal_name in ("n_train", "label_counts", "group_counts", "loss_count", "steps", "pass_units")
        return (numbers * 50).astype(np.int64) + 1 if is_count else numbers

    def signals(self, needs: frozenset[str]) -> Signals:
        """Return the static signals of all clients."""
        values_by_name = {
            name: self.values(name, 0, self.clients) for name in needs if isinstance(find_signal(name), Static)
        }
        return Signals(values_by_name, needs, "the selector")

    def answer(self, probe: Probe, round: int) -> ProbeResult:
        """Return the values that the queried clients report."""
        return ProbeResult(probe.clients, self.values(probe.signal, round, len(probe.clients)).astype(np.float64))

    def updates(self, round: int, count: int) -> torch.Tensor:
        """Return the updates of a cohort, [count, parameters]."""
        return torch.from_numpy(self.values("update", round, count))

    def outcome(
        self, round: int, selection: Selection, needs: frozenset[str], later: dict[str, ProbeResult]
    ) -> RoundOutcome:
        """Return the outcome of a round in which all selected clients arrive."""
        m, uploaded, no_lab = len(selection.clients), dict[str, Any](), cast(Any, None)
        for name in needs:
            if isinstance(find_signal(name), RawUpdate | Reported) or name in self.widths:
                uploaded[name] = self.values(name, round, m).astype(np.float64)
            elif isinstance(signal := find_signal(name), Derived):
                uploaded[name] = signal.make(no_lab, self.updates(round, m)) if signal.pairs else lambda weights: 1.0
        signals = Signals(uploaded, needs, "the selector")
        return RoundOutcome(round, selection, selection.clients, np.empty(0, np.int64), signals, later, 1.0)


def rounds(selector: Selector[Any], world: World, count: int) -> Iterator[tuple[float, int]]:
    """Yield for each round the seconds of plan, select and observe together, and the number of queried clients."""
    needs = selector.needs
    signals = world.signals(needs)
    state = selector.init(Population(world.clients, CLASSES, world.cohort, signals))
    all_clients = np.arange(world.clients)
    for t in range(count):
        ctx = RoundContext(
            t, world.cohort, world.clients, all_clients, signals, new_generator(0, "selector", t), EPOCHS
        )
        seconds = -time.perf_counter()
        probes = selector.plan(state, ctx)
        seconds += time.perf_counter()
        answers = {probe.signal: world.answer(probe, t) for probe in probes}
        answers_before = {probe.signal: answers[probe.signal] for probe in probes if not probe.concurrent}
        seconds -= time.perf_counter()
        selection, state = selector.select(state, ctx, answers_before)
        seconds += time.perf_counter()
        answers_after = {probe.signal: answers[probe.signal] for probe in probes if probe.concurrent}
        outcome = world.outcome(t, selection, needs, answers_after)
        seconds -= time.perf_counter()
        _, state = selector.observe(state, outcome)
        seconds += time.perf_counter()
        yield seconds, max((len(probe.clients) for probe in probes), default=0)


def measure_in_process(name: str, clients: int, cohort: int) -> None:
    """Measure one selector and print JSON: milliseconds per round and the number of queried clients."""
    seconds, queried = zip(*rounds(make_selector(name), World(clients, cohort, WIDTHS), ROUNDS), strict=True)
    timed = [1000 * s for s in seconds[WARM_UP:]]
    first = 1000 * max(seconds[:WARM_UP])
    summary = {"median": statistics.median(timed), "most": max(timed), "first": first, "asked": max(queried[WARM_UP:])}
    sys.stdout.write("RESULT " + json.dumps(summary) + "\n")


@cache
def measure(name: str, clients: int, cohort: int = COHORT) -> dict[str, float]:
    """Run `measure_in_process` in a new process with one thread, and return its result."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "one", name, str(clients), str(cohort)]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    summary: dict[str, float] = json.loads(process.stdout.split("RESULT ")[-1])
    return summary


def format_row(name: str) -> str:
    """Measure one selector at both population sizes and return its table row."""
    cells = [f"`{name}`"]
    for clients in SIZES:
        if clients > LARGEST.get(name, clients):
            cells += ["-", "-"]
            continue
        times = measure(name, clients)
        mark = " (over)" if times["median"] > GOALS[clients] and name not in NO_GOAL else ""
        cells += [f"{times['median']:.2f}{mark}", f"{times['most']:.1f}"]
    return f"| {' | '.join(cells)} |"


def format_growth(name: str) -> str:
    """Measure a selector with growing populations and return the table."""
    lines = [
        f"| `{name}`: clients | median, ms | largest, ms | largest of the first three rounds, ms |",
        "|---|---|---|---|",
    ]
    for clients in GROWTH[name]:
        times = measure(name, clients)
        lines.append(f"| {clients:,} | {times['median']:.1f} | {times['most']:.1f} | {times['first']:.0f} |")
    return "\n".join(lines)


def measure_fedpns() -> str:
    """Measure FedPNS's signal and `observe` with a realistic cohort and model, and return the sentence about them."""
    torch.set_num_threads(1)
    m, P = FEDPNS
    world, selector, no_clients = World(100, m, {**WIDTHS, "update": P}), make_selector("fedpns"), np.empty(0, np.int64)
    state = selector.init(Population(100, CLASSES, m, world.signals(selector.needs)))
    gram_signal: Any = find_signal("update_gram")
    no_lab: Any = None
    U, steps, clients = world.updates(0, m), world.values("steps", 0, m).astype(np.float64), np.arange(m)
    total_s, observe_s = [], []
    for _ in range(5):
        start_s = time.perf_counter()
        signals = {"update_gram": gram_signal.make(no_lab, U), "steps": steps}
        signal_s = time.perf_counter()
        selector.observe(state, RoundOutcome(0, Selection(clients), clients, no_clients, signals, {}, 1.0))
        total_s.append(time.perf_counter() - start_s)
        observe_s.append(time.perf_counter() - signal_s)
    return (
        f"With {m} clients and {P:,} parameters, FedPNS's signal `update_gram` (float64, one thread) and `observe` "
        f"take {statistics.median(total_s):.2f} s together, of which `observe` takes "
        f"{1000 * statistics.median(observe_s):.1f} ms."
    )


def paragraph(text: str) -> str:
    """Return the text in lines of at most 118 characters."""
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


def main() -> None:
    """Measure all selectors, and write and print the page."""
    lines = [
        "# Time per round of each selector",
        "",
        paragraph(
            f"""{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, numpy
            {np.__version__}, one thread. All clients are available, the cohort has {COHORT}, and queried signals have
            random values. The time covers the selector's plan, select and observe, without training. Columns give the
            median and the largest of {ROUNDS - WARM_UP} rounds after the first {WARM_UP}. The goals are
            {GOALS[SIZES[0]]:.0f} ms with {SIZES[0]:,} clients and {GOALS[SIZES[1]]:.0f} ms with {SIZES[1]:,}.
            `make bench-selection` writes this file. [pace.md](pace.md) measures availability, deadlines and the
            selection of samples."""
        ),
        "",
        f"| selector | {SIZES[0]:,} clients: median, ms | largest, ms | {SIZES[1]:,} clients: median | largest |",
        "|---|---|---|---|---|",
        *(format_row(name) for name in list_selectors()),
        "",
        paragraph(
            """The goals do not apply to three selectors. FedCor stores a covariance for every pair of clients (80 GB
            for 100,000 clients) and updates all of them for each client that it selects. It fits client features in
            the first rounds (here after 2 instead of 15) and then every ten rounds. HCSFed forms its strata only in
            the first round, by k-means of compressed gradients in ten groups. The neural bandit trains a network with
            a hundred steps per round, and solves a linear system for the bonus of every client."""
        ),
        "",
        format_growth("fedcor"),
        "",
        format_growth("hcsfed"),
        "",
        paragraph(measure_fedpns()),
    ]
    text = "\n".join(lines) + "\n"
    (FOLDER / "selection.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        measure_in_process(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) > 1:
        sys.stdout.write("".join(f"{format_row(word)}\n" for word in sys.argv[1].split(",")))
    else:
        main()
