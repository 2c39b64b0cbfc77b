"""A round's pace alone: who is ready, what is announced, how long everybody takes, who arrives.

    python benchmarks/pace.py         writes benchmarks/pace.md

100,000 clients with made-up devices of their own (device=trace, each phase varying between rounds), of whom 1,000 are
selected; either of `INTERVALS` intervals each in five days (availability=trace), or a share of each day
(availability=diurnal). The goal is 50 ms a round. Beside it: what the selected clients take to choose their samples by
FedBalancer's threshold, which is their work and no decision of the server, and what their lists of losses cost.
"""

import datetime
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.availability.base import Availability
from fedcohort.deadline.base import Deadline, PaceContext, compute_outcome
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.round.clock import Clock
from fedcohort.round.jobs import Jobs
from fedcohort.round.sampling import SampleSelection, pack_losses
from fedcohort.round.store import MemoryStore
from fedcohort.samples.base import LOSSES
from fedcohort.signal.lab import Lab
from fedcohort.types import Ids, Population

HERE = Path(__file__).parent
CLIENTS, COHORT, INTERVALS, DAYS, UNITS = 100_000, 1000, 20, 5, 5
ROUNDS, WARM_UP = 23, 3
GOAL = 50.0  # milliseconds
MODEL = 4e6  # bytes
DEADLINES: dict[str, dict[str, object]] = {"fixed": {"partial_work": True}, "over_commit": {}, "fedbalancer": {}}
LISTS = 3550  # clients that keep a list of losses: LEAF's FEMNIST


def make(group: str, word: str, **changes: object) -> Any:  # noqa: ANN401  a part, as the yaml says
    """The part with its yaml's options, and `changes`."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(HERE.parent / "configs" / group / f"{word}.yaml"))
    return instantiate({**loaded, **changes}, _convert_="all")


def write_tables(folder: Path, clients: int) -> None:
    """Devices and intervals of made-up clients."""
    rng, ids = np.random.default_rng(0), np.arange(clients)
    speeds = {name: rng.uniform(100, 1000, clients) for name in ("down", "up")}
    devices = {"client": ids, "seconds": rng.uniform(0.05, 0.5, clients), **speeds, "cv": rng.uniform(0, 0.3, clients)}
    cuts = np.sort(rng.uniform(0, DAYS * 86400, (clients, 2 * INTERVALS)), axis=1)
    ready = {"client": np.repeat(ids, INTERVALS), "start_s": cuts[:, ::2].ravel(), "end_s": cuts[:, 1::2].ravel()}
    pq.write_table(pa.table(devices), folder / "devices.parquet")
    pq.write_table(pa.table(ready), folder / "ready.parquet")


def rounds(
    availability: Availability, device: Device, deadline: Deadline[Any], clients: int, cohort: int
) -> Iterator[float]:
    """The milliseconds of each round, without end."""
    n = np.random.default_rng(1).integers(20, 200, clients)

    def work(ids: Ids) -> Workload:
        sent = np.full(len(ids), MODEL)
        return Workload(n[ids].astype(np.float64), n[ids] / 15, UNITS, sent, sent, UNITS)

    everybody = device.expect(np.arange(clients), work(np.arange(clients)), Draws(0, clients))
    clock, state = (
        Clock(availability, Draws(0, clients), 0.0),
        deadline.init(Population(clients, 10, cohort, {"n_train": n})),
    )
    now, t = 0.0, 0
    while True:
        draws = Draws(0, clients, t)
        took = -time.perf_counter()
        ready, wait = clock.find_ready(draws, now)
        took += time.perf_counter()
        asked = min(deadline.cohort_size(cohort), len(ready))
        selected = np.sort(np.random.default_rng(t).choice(ready, asked, replace=False))
        took -= time.perf_counter()
        expected = device.expect(selected, work(selected), draws.once())
        announced = deadline.announce(state, PaceContext(t, selected, UNITS, everybody, expected))
        timing = device.sample(selected, work(selected), draws)
        stretch = partial(clock.wall_time(now + wait), selected)
        close = deadline.close(state, stretch(timing.finish(UNITS)), announced)
        outcome = compute_outcome(timing, UNITS, close, deadline.partial_work, wall_time=stretch)
        took += time.perf_counter()
        now, t = now + wait + outcome.train_s, t + 1
        yield 1000 * took


def measure(clients: int = CLIENTS, cohort: int = COHORT) -> dict[tuple[str, str], tuple[float, float]]:
    """Median and largest milliseconds, by the words of availability and deadline."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, clients)
        cv = dict.fromkeys(("seconds_cv", "down_cv", "up_cv"), "cv")
        device = make("device", "trace", path=str(folder / "devices.parquet"), **cv)
        for availability, options in (("trace", {"path": str(folder / "ready.parquet")}), ("diurnal", {})):
            for deadline, changes in DEADLINES.items():
                parts = make("availability", availability, **options), device, make("deadline", deadline, **changes)
                each = rounds(*parts, clients, cohort)
                took = [next(each) for _ in range(ROUNDS)][WARM_UP:]
                found[availability, deadline] = statistics.median(took), max(took)
    return found


def choose(cohort: int = COHORT) -> tuple[float, float]:
    """Median and largest milliseconds in which a cohort that keeps lists chooses its samples; a fifth of them fit."""
    rng = np.random.default_rng(1)
    n = rng.integers(20, 200, cohort)
    store = MemoryStore(None)
    for k in range(cohort):
        store.commit(k, pack_losses(rng.exponential(1.0, n[k])))
    federation: Any = SimpleNamespace(n_train=n)
    part, nobody = make("samples", "fedbalancer"), np.zeros(cohort)
    state = replace(part.init(Population(cohort, 10, cohort, {})), threshold=1.0)
    chooser = SampleSelection(part, federation, 10, store, Lab)  # type: ignore[arg-type]
    timing, units, up = Timing(nobody, nobody, n / UNITS, nobody), np.full(cohort, UNITS), [None] * cohort
    jobs = Jobs(np.arange(cohort), np.zeros(cohort, np.int64), nobody > 0, units, units, nobody, up, nobody)
    jobs = replace(jobs, announced_s=np.full(cohort, float(n.mean()) / 5), expected=timing)
    took = []
    for t in range(ROUNDS):
        took.append(-1000 * time.perf_counter())
        chooser.choose(state, jobs, {}, Draws(0, cohort, t))
        took[-1] += 1000 * time.perf_counter()
    return statistics.median(took[WARM_UP:]), max(took[WARM_UP:])


def bytes_of_lists() -> float:
    """Return the bytes a sample that the lists of losses of `LISTS` clients take in memory."""
    rng, store = np.random.default_rng(0), MemoryStore(None)
    n = rng.integers(20, 400, LISTS)
    for k in range(LISTS):
        store.commit(k, pack_losses(rng.exponential(1.0, n[k])))
    return sum(store.get(k)[LOSSES].nbytes for k in range(LISTS)) / float(n.sum())


def page(found: dict[tuple[str, str], tuple[float, float]]) -> str:
    lines = [
        "# A round's pace",
        "",
        f"{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}; "
        f"{CLIENTS:,} clients,",
        f"{COHORT:,} wanted, device=trace. Milliseconds of who is ready, what is announced, how long it takes and who "
        "arrives:",
        f"median and largest of {ROUNDS - WARM_UP} rounds after the first {WARM_UP}. The goal is {GOAL:.0f} ms. "
        "`python benchmarks/pace.py` writes this file.",
        "",
        "| availability | deadline | ms a round | most |",
        "|---|---|---|---|",
    ]
    for (availability, deadline), (median, most) in found.items():
        over = " (over)" if median > GOAL else ""
        lines.append(f"| `{availability}` | `{deadline}` | {median:.1f}{over} | {most:.1f} |")
    median, most = choose()
    lines += [
        "",
        f"{COHORT:,} clients of 20 to 199 samples choose theirs by FedBalancer's threshold in {median:.0f} ms (at most "
        f"{most:.0f}).",
        f"Lists of losses of {LISTS:,} clients: {bytes_of_lists():.1f} bytes a sample.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    text = page(measure())
    (HERE / "pace.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
