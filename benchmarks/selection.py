"""`make bench-selection`: what choosing itself costs. No training, no probes: every answer is made up.

python benchmarks/selection.py [words]   writes benchmarks/selection.md; with words it prints their rows alone
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
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.rng import generator
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Derived, RawUpdate, Reported, Static, find
from fedcohort.types import Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Signals

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs" / "selector"
COHORT, CLASSES, EPOCHS = 10, 10, 5
SIZES = (3550, 100_000)
GOALS = {3550: 5.0, 100_000: 150.0}  # milliseconds a round
ROUNDS, WARM_UP = 23, 3  # everybody's first answers come in the first; modules are imported there
WIDE = {"label_counts": CLASSES, "group_counts": 2 * CLASSES, "dht": 3, "compressed_gradient": 23, "update": 1000}
OPTIONS = {  # fedcor: so that the rounds that are timed come after its warm-up; yardsticks refuse so many clients
    "fedcor": {"warmup": 1},
    "oracle_greedy": {"limit": SIZES[-1]},
    "worst": {"limit": SIZES[-1]},
}
NO_GOAL = {"fedcor", "hcsfed", "neural_bandit"}  # not O(K): see the table's notes
LARGEST = {"fedcor": 3550}  # clients: it keeps a number for every pair of them
GROWTH = {"fedcor": (250, 500, 1000, 2000, 4000), "hcsfed": (1000, 3550, 10_000, 30_000, 100_000)}
FEDPNS = (50, 2_200_000)  # clients, parameters


def words() -> list[str]:
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def selector_of(word: str, **changes: object) -> Selector[Any]:
    """The selector with its yaml's options; an alias is its base with the options that it sets."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{word}.yaml"))
    if "_target_" not in loaded:
        base: Any = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{loaded['defaults'][0].split('@')[0]}.yaml"))
        loaded = {**base, **loaded["selector"]}
    made: Selector[Any] = instantiate({**loaded, **OPTIONS.get(word, {}), **changes}, _convert_="all")
    return made


@dataclass(frozen=True)
class World:
    """Made-up clients. wide: numbers in a row of each signal that is one, parameters for updates."""

    clients: int
    cohort: int
    wide: dict[str, int]

    def values(self, word: str, round: int, count: int) -> np.ndarray:
        """[count] or [count, d]: positive, and counts where they count something."""
        d = self.wide.get(word)
        rng = generator(0, f"bench/{word}", round)
        made = 0.1 + rng.random(count if d is None else (count, d))
        if word == "compressed_gradient":  # groups of clients, as there are in skewed data
            made += 2 * rng.random((CLASSES, made.shape[1]))[np.arange(count) % CLASSES]
        whole = word in ("n_train", "label_counts", "group_counts", "loss_count", "steps", "pass_units")
        return (made * 50).astype(np.int64) + 1 if whole else made

    def signals(self, needs: frozenset[str]) -> Signals:
        found = {word: self.values(word, 0, self.clients) for word in needs if isinstance(find(word), Static)}
        return Signals(found, needs, "the selector")

    def answer(self, probe: Probe, round: int) -> ProbeResult:
        return ProbeResult(probe.clients, self.values(probe.signal, round, len(probe.clients)).astype(np.float64))

    def updates(self, round: int, count: int) -> torch.Tensor:
        return torch.from_numpy(self.values("update", round, count))

    def pairs(self, signal: Derived, round: int, count: int) -> np.ndarray:
        """What the server works out of updates alone, [count, count]."""
        nobody: Any = None
        made: np.ndarray = signal.make(nobody, self.updates(round, count))
        return made

    def outcome(
        self, round: int, selection: Selection, needs: frozenset[str], later: dict[str, ProbeResult]
    ) -> RoundOutcome:
        """Everybody arrives."""
        m, told = len(selection.clients), dict[str, Any]()
        for word in needs:
            if isinstance(find(word), RawUpdate | Reported):
                told[word] = self.values(word, round, m).astype(np.float64)
            elif isinstance(signal := find(word), Derived):
                told[word] = self.pairs(signal, round, m) if signal.pairs else (lambda weights: 1.0)
        nobody = np.empty(0, np.int64)
        return RoundOutcome(
            round, selection, selection.clients, nobody, Signals(told, needs, "the selector"), later, 1.0
        )


def rounds(selector: Selector[Any], world: World, count: int) -> Iterator[tuple[float, int]]:
    """(seconds of plan, select and observe, clients that were asked) of each round."""
    needs = selector.needs
    signals = world.signals(needs)
    state = selector.init(Population(world.clients, CLASSES, world.cohort, signals))
    everybody = np.arange(world.clients)
    for t in range(count):
        ctx = RoundContext(t, world.cohort, world.clients, everybody, signals, generator(0, "selector", t), EPOCHS)
        took = -time.perf_counter()
        probes = selector.plan(state, ctx)
        took += time.perf_counter()
        answers = {probe.signal: world.answer(probe, t) for probe in probes}
        now = {probe.signal: answers[probe.signal] for probe in probes if not probe.concurrent}
        took -= time.perf_counter()
        selection, state = selector.select(state, ctx, now)
        took += time.perf_counter()
        later = {probe.signal: answers[probe.signal] for probe in probes if probe.concurrent}
        outcome = world.outcome(t, selection, needs, later)
        took -= time.perf_counter()
        _, state = selector.observe(state, outcome)
        took += time.perf_counter()
        yield took, max((len(probe.clients) for probe in probes), default=0)


def one(word: str, clients: int, cohort: int) -> None:
    """One process's measurement, as JSON: milliseconds a round."""
    seconds, asked = zip(*rounds(selector_of(word), World(clients, cohort, WIDE), ROUNDS), strict=True)
    later = [1000 * s for s in seconds[WARM_UP:]]
    first = 1000 * max(seconds[:WARM_UP])
    found = {"median": statistics.median(later), "most": max(later), "first": first, "asked": max(asked[WARM_UP:])}
    sys.stdout.write("RESULT " + json.dumps(found) + "\n")


@cache
def measured(word: str, clients: int, cohort: int = COHORT) -> dict[str, float]:
    """`one` in a process of its own, one thread."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "one", word, str(clients), str(cohort)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    found: dict[str, float] = json.loads(done.stdout.split("RESULT ")[-1])
    return found


def row(word: str) -> str:
    cells = [f"`{word}`"]
    for clients in SIZES:
        if clients > LARGEST.get(word, clients):
            cells += ["-", "-"]
            continue
        found = measured(word, clients)
        over = " (over)" if found["median"] > GOALS[clients] and word not in NO_GOAL else ""
        cells += [f"{found['median']:.2f}{over}", f"{found['most']:.1f}"]
    return f"| {' | '.join(cells)} |"


def growth(word: str) -> str:
    """A table over the number of clients."""
    lines = [f"| `{word}`: clients | ms a round, median | most | largest of the first three |", "|---|---|---|---|"]
    for clients in GROWTH[word]:
        found = measured(word, clients)
        lines.append(f"| {clients:,} | {found['median']:.1f} | {found['most']:.1f} | {found['first']:.0f} |")
    return "\n".join(lines)


def gram() -> str:
    """What a round of FedPNS takes beside its draw: its signal and its `observe`, of a cohort of real size."""
    torch.set_num_threads(1)
    m, P = FEDPNS
    world, selector, nobody = World(100, m, {**WIDE, "update": P}), selector_of("fedpns"), np.empty(0, np.int64)
    state = selector.init(Population(100, CLASSES, m, world.signals(selector.needs)))
    made: Any = find("update_gram")
    lab: Any = None
    U, steps, everybody = world.updates(0, m), world.values("steps", 0, m).astype(np.float64), np.arange(m)
    whole, observed = [], []
    for _ in range(5):
        began = time.perf_counter()
        told = {"update_gram": made.make(lab, U), "steps": steps}
        middle = time.perf_counter()
        selector.observe(state, RoundOutcome(0, Selection(everybody), everybody, nobody, told, {}, 1.0))
        whole.append(time.perf_counter() - began)
        observed.append(time.perf_counter() - middle)
    return (
        f"FedPNS with {m} clients and {P:,} parameters: {statistics.median(whole):.2f} s for its signal `update_gram` "
        f"(float64, one thread) and `observe` together, of which `observe` is {1000 * statistics.median(observed):.1f} "
        "ms."
    )


def paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 118, break_on_hyphens=False)


def main() -> None:
    lines = [
        "# Selection itself",
        "",
        paragraph(
            f"""{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, numpy
            {np.__version__}; one thread; cohort {COHORT}, everybody available and asked what the selector asks; answers
            are made up. Milliseconds of plan, select and observe together: median and largest of {ROUNDS - WARM_UP}
            rounds after the first {WARM_UP}. Goals: {GOALS[SIZES[0]]:.0f} ms at {SIZES[0]:,} clients,
            {GOALS[SIZES[1]]:.0f} ms at {SIZES[1]:,}. `make bench-selection` writes this file.
            Availabilities, deadlines and lists of losses are in [pace.md](pace.md)."""
        ),
        "",
        f"| selector | {SIZES[0]:,} clients, ms | most | {SIZES[1]:,} clients, ms | most |",
        "|---|---|---|---|---|",
        *(row(word) for word in words()),
        "",
        paragraph(
            """FedCor keeps a number for every pair of clients (80 GB for 100,000), and changes all of them for each
            client that it chooses; features are fitted in the first rounds (here after 2, not 15) and again every ten.
            HCSFed forms its strata in the first round alone, by k-means of sketches in ten groups. The neural bandit
            fits a network, a hundred steps a round, and solves with a matrix for everybody's bonus. The goals are not
            for these three."""
        ),
        "",
        growth("fedcor"),
        "",
        growth("hcsfed"),
        "",
        paragraph(gram()),
    ]
    text = "\n".join(lines) + "\n"
    (HERE / "selection.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif len(sys.argv) > 1:
        sys.stdout.write("".join(f"{row(word)}\n" for word in sys.argv[1].split(",")))
    else:
        main()
