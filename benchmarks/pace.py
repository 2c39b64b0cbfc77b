"""Time per round of availability, device times and deadlines, without training.

    python benchmarks/pace.py         writes benchmarks/pace.md

100,000 clients have generated devices (device=trace, with times that vary between rounds), and 1,000 are selected. Each
client is available in `INTERVALS` intervals within five days (availability=trace) or for a share of each day
(availability=diurnal). The goal is 50 ms per round. The script also measures how long a cohort takes to select samples
by FedBalancer's threshold, which is the clients' work, and the memory of their lists of losses. At last it measures the
decisions of asynchronous steps in a run in which 1,000 of 100,000 clients are at work: selection, queries, arrivals and
costs, without training.
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
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hydra.utils import instantiate
from omegaconf import OmegaConf

from fedcohort.api.run import run_with_overrides
from fedcohort.availability.base import Availability
from fedcohort.deadline.base import Deadline, PaceContext, compute_outcome
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.rng import Draws
from fedcohort.round.clock import VirtualClock
from fedcohort.round.jobs import Jobs
from fedcohort.round.round import RoundRunner
from fedcohort.round.sampling import SampleSelection, pack_losses
from fedcohort.round.store import MemoryClientStore
from fedcohort.samples.base import LOSS_LIST_NAME
from fedcohort.signal.access import SignalAccess
from fedcohort.types import Ids, Population
from growth import OVERRIDES, write_population

FOLDER = Path(__file__).parent
CLIENTS, COHORT, INTERVALS, DAYS, UNITS = 100_000, 1000, 20, 5, 5
ROUNDS, WARM_UP = 23, 3
GOAL = 50.0  # milliseconds
MODEL = 4e6  # bytes
# Options of each deadline that is measured, in addition to its yaml file's.
DEADLINES: dict[str, dict[str, object]] = {"fixed": {"partial_work": True}, "over_commit": {}, "fedbalancer": {}}
# availability, deadline.refill, and arrivals that end an asynchronous step
STEPS = (("always", "arrival", 10), ("diurnal", "arrival", 10), ("always", "arrival", 100), ("always", "step", 100))
N_LOSS_LISTS = 3550  # clients with a list of losses, as many as in LEAF's FEMNIST


def make_component(group: str, name: str, **changes: object) -> Any:  # noqa: ANN401  the class is in the yaml file
    """Return a component with the options of its yaml file, replaced by `changes`."""
    options: Any = OmegaConf.to_container(OmegaConf.load(FOLDER.parent / "configs" / group / f"{name}.yaml"))
    return instantiate({**options, **changes}, _convert_="all")


def write_tables(folder: Path, clients: int) -> None:
    """Write random devices and intervals of availability to devices.parquet and ready.parquet."""
    rng, ids = np.random.default_rng(0), np.arange(clients)
    speeds = {name: rng.uniform(100, 1000, clients) for name in ("down", "up")}
    devices = {"client": ids, "seconds": rng.uniform(0.05, 0.5, clients), **speeds, "cv": rng.uniform(0, 0.3, clients)}
    bounds_s = np.sort(rng.uniform(0, DAYS * 86400, (clients, 2 * INTERVALS)), axis=1)
    ready = {
        "client": np.repeat(ids, INTERVALS),
        "start_s": bounds_s[:, ::2].ravel(),
        "end_s": bounds_s[:, 1::2].ravel(),
    }
    pq.write_table(pa.table(devices), folder / "devices.parquet")
    pq.write_table(pa.table(ready), folder / "ready.parquet")


def time_rounds(
    availability: Availability, device: Device, deadline: Deadline[Any], clients: int, cohort: int
) -> Iterator[float]:
    """Simulate rounds without end and yield the milliseconds that each takes."""
    n = np.random.default_rng(1).integers(20, 200, clients)

    def workload(ids: Ids) -> Workload:
        model_bytes = np.full(len(ids), MODEL)
        return Workload(n[ids].astype(np.float64), n[ids] / 15, UNITS, model_bytes, model_bytes, UNITS)

    expected_all = device.expect(np.arange(clients), workload(np.arange(clients)), Draws(0, clients))
    clock, state = (
        VirtualClock(availability, Draws(0, clients), 0.0),
        deadline.init(Population(clients, 10, cohort, {"n_train": n})),
    )
    now_s, t = 0.0, 0
    while True:
        draws = Draws(0, clients, t)
        seconds = -time.process_time()
        ready, wait = clock.find_ready_clients(draws, now_s)
        seconds += time.process_time()
        cohort_size = min(deadline.cohort_size(cohort), len(ready))
        selected = np.sort(np.random.default_rng(t).choice(ready, cohort_size, replace=False))
        seconds -= time.process_time()
        expected = device.expect(selected, workload(selected), draws.draws_of_run())
        deadline_s = deadline.announce(state, PaceContext(t, selected, UNITS, expected_all, expected))
        timing = device.sample(selected, workload(selected), draws)
        wall_time = partial(clock.wall_time(now_s + wait), selected)
        close = deadline.close(state, wall_time(timing.finish_s(UNITS)), deadline_s)
        outcome = compute_outcome(timing, UNITS, close, deadline.partial_work, wall_time=wall_time)
        seconds += time.process_time()
        now_s, t = now_s + wait + outcome.train_s, t + 1
        yield 1000 * seconds


def measure(clients: int = CLIENTS, cohort: int = COHORT) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the median and the largest milliseconds per round, by availability and deadline."""
    milliseconds = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, clients)
        cv = dict.fromkeys(("seconds_cv", "down_cv", "up_cv"), "cv")
        device = make_component("device", "trace", path=str(folder / "devices.parquet"), **cv)
        for availability, options in (("trace", {"path": str(folder / "ready.parquet")}), ("diurnal", {})):
            for deadline, changes in DEADLINES.items():
                available = make_component("availability", availability, **options)
                deadline_part = make_component("deadline", deadline, **changes)
                round_times = time_rounds(available, device, deadline_part, clients, cohort)
                measured = [next(round_times) for _ in range(ROUNDS)][WARM_UP:]
                milliseconds[availability, deadline] = statistics.median(measured), max(measured)
    return milliseconds


def time_steps(clients: int = CLIENTS, in_flight: int = COHORT) -> dict[tuple[str, str, int], tuple[float, float]]:
    """Return the median and the largest milliseconds of processor time in which a step of `STEPS` is decided."""
    milliseconds, begin, recorded = {}, RoundRunner.begin_round, list[float]()

    def timed(self: RoundRunner, round: int) -> Any:  # noqa: ANN401  what `begin` returns
        recorded.append(-1000 * time.process_time())
        tasks = begin(self, round)
        recorded[-1] += 1000 * time.process_time()
        return tasks

    with tempfile.TemporaryDirectory() as name, patch.object(RoundRunner, "begin_round", timed):
        write_population(Path(name), clients)
        for availability, refill, arrivals in STEPS:
            recorded.clear()
            options = [
                *("deadline=buffered", f"deadline.refill={refill}", f"deadline.buffer={arrivals}", "agg=fedbuff"),
                *(f"deadline.concurrency={in_flight}", "device.persistent=true"),
                f"availability={availability}",
            ]
            run_with_overrides([*OVERRIDES, *options, f"dataset.path={name}", f"paths.logs={name}/logs"])
            milliseconds[availability, refill, arrivals] = (
                statistics.median(recorded[WARM_UP:]),
                max(recorded[WARM_UP:]),
            )
    return milliseconds


def time_sample_choice(cohort: int = COHORT) -> tuple[float, float]:
    """Return the median and the largest milliseconds in which a cohort selects samples by loss.

    The announced deadline leaves time for a fifth of the samples.
    """
    rng = np.random.default_rng(1)
    n = rng.integers(20, 200, cohort)
    store = MemoryClientStore(None)
    for k in range(cohort):
        store.write_client_vectors(k, pack_losses(rng.exponential(1.0, n[k])))
    federation: Any = SimpleNamespace(n_train=n)
    sample_selector, zeros = make_component("samples", "fedbalancer"), np.zeros(cohort)
    state = replace(sample_selector.init(Population(cohort, 10, cohort, {})), threshold=1.0)
    chooser = SampleSelection(sample_selector, federation, 10, store, SignalAccess)  # type: ignore[arg-type]
    timing, units, up = Timing(zeros, zeros, n / UNITS, zeros), np.full(cohort, UNITS), [None] * cohort
    jobs = Jobs(np.arange(cohort), np.zeros(cohort, np.int64), zeros > 0, units, units, zeros, up, zeros > 0, zeros)
    jobs = replace(jobs, announced_s=np.full(cohort, float(n.mean()) / 5), expected=timing)
    milliseconds = []
    for t in range(ROUNDS):
        milliseconds.append(-1000 * time.process_time())
        chooser.choose_samples(state, jobs, {}, Draws(0, cohort, t))
        milliseconds[-1] += 1000 * time.process_time()
    return statistics.median(milliseconds[WARM_UP:]), max(milliseconds[WARM_UP:])


def bytes_per_loss() -> float:
    """Return the bytes per sample that the lists of losses of `N_LOSS_LISTS` clients take in memory."""
    rng, store = np.random.default_rng(0), MemoryClientStore(None)
    n = rng.integers(20, 400, N_LOSS_LISTS)
    for k in range(N_LOSS_LISTS):
        store.write_client_vectors(k, pack_losses(rng.exponential(1.0, n[k])))
    return sum(store.read_vectors(k)[LOSS_LIST_NAME].nbytes for k in range(N_LOSS_LISTS)) / float(n.sum())


def page(
    milliseconds: dict[tuple[str, str], tuple[float, float]],
    step_times: dict[tuple[str, str, int], tuple[float, float]],
) -> str:
    """Return the text of pace.md from the results of `measure` and `time_steps`; other times are measured here."""
    lines = [
        "# Time per round of availability and deadlines",
        "",
        f"{datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}. "
        f"{CLIENTS:,} clients,",
        f"of which {COHORT:,} are selected; device=trace. The processor time covers available clients, the",
        "announced deadline, device times and arrivals, without training. Columns give the median and the largest of",
        f"{ROUNDS - WARM_UP} rounds after the first {WARM_UP}. The goal is {GOAL:.0f} ms per round. "
        "`python benchmarks/pace.py` writes this file.",
        "",
        "| availability | deadline | median, ms | largest, ms |",
        "|---|---|---|---|",
    ]
    for (availability, deadline), (median, largest) in milliseconds.items():
        mark = " (over)" if median > GOAL else ""
        lines.append(f"| `{availability}` | `{deadline}` | {median:.1f}{mark} | {largest:.1f} |")
    median, largest = time_sample_choice()
    lines += [
        "",
        f"Selecting samples by FedBalancer's threshold takes {median:.0f} ms (at most {largest:.0f} ms) for {COHORT:,} "
        "clients with 20 to 199",
        f"samples each. The lists of losses of {N_LOSS_LISTS:,} clients take {bytes_per_loss():.1f} bytes per sample.",
        "",
        "## Asynchronous steps",
        "",
        f"`deadline=buffered` with {COHORT:,} of {CLIENTS:,} clients at work and random selection: the processor time",
        "of all decisions of a step. With `deadline.refill=arrival` the selector is called at each arrival.",
        "",
        "| availability | refill | arrivals per step | median, ms | largest, ms |",
        "|---|---|---|---|---|",
    ]
    for (availability, refill, arrivals), (median, largest) in step_times.items():
        mark = " (over)" if median > GOAL else ""
        lines.append(f"| `{availability}` | `{refill}` | {arrivals} | {median:.1f}{mark} | {largest:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write and print the page."""
    text = page(measure(), time_steps())
    (FOLDER / "pace.md").write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
