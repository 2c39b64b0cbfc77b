"""All pairs of options of the groups of time, codecs and attacks run with correct sums and resume bit for bit.

Selectors, aggregators and objectives alternate, because test_every_pair.py covers their pairs. A rejection at start-up
states its reason; any other exception is an error.
"""

from pathlib import Path

import numpy as np
import pytest

from config_options import list_options
from covering_array import covering_rows
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from fedcohort.types import RoundReport
from run_harness import FinishedRun, collecting_overrides, compose_overrides, run_composition, same_bits

GROUPS = ("samples", "deadline", "availability", "device", "client", "regulariser", "codec", "attack")
ROTATED_GROUPS = ("selector", "agg", "objective")
TINY = (
    *("clients=6", "cohort=3", "client.epochs=2", "split.limit=240", "model=logreg", "proxy=noise", "proxy.n=20"),
    *("checkpoint.every_s=0", "deadline.window_s=5", "heterogeneity=noise15"),
)
REDUCED_WORK = {
    "availability=diurnal": ("availability.day_s=60",),
    "agg=feddf": ("agg.steps=20",),
    "agg=rhfl": ("agg.batches=1",),
    "selector=feddiverse": ("selector.epochs=1",),
    "samples=oort_balancer": ("client.steps=3",),
}
JOBS = 8  # number of test cases that share the runs
ROWS = [
    [f"{group}={list_options(group)[i]}" for group, i in zip(GROUPS, row, strict=True)]
    + [f"{group}={list_options(group)[n % len(list_options(group))]}" for group in ROTATED_GROUPS]
    for n, row in enumerate(covering_rows([len(list_options(group)) for group in GROUPS]))
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of devices and a table of their available intervals, for the options that read them."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [f"{k},{1 + k / 10},{20 + k},{10 + k}" for k in range(6)]
    (folder / "device.csv").write_text("\n".join(["client,seconds,down,up", *rows]) + "\n")
    rows = [f"{k},{40 * i + 9 * k},{40 * i + 9 * k + 25}" for k in range(6) for i in range(9)]
    (folder / "availability.csv").write_text("\n".join(["client,start_s,end_s", *rows]) + "\n")
    return folder


def list_overrides(row: list[str], tables: Path) -> list[str]:
    groups = [override.removesuffix("=trace") for override in row if override.endswith("=trace")]
    files = [f"{group}.path={tables / group}.csv" for group in groups]
    return [*TINY, *row, *files, *(option for override in row for option in REDUCED_WORK.get(override, ()))]


def run(logs: Path, *overrides: str) -> FinishedRun:
    return run_composition(compose_overrides(*collecting_overrides(logs, *overrides)))


def check_sums(trained_run: FinishedRun) -> None:
    """Check that each selected client arrives or is late, that time is monotone, and that means match the table."""
    times = np.zeros(len(trained_run.info.n_train))
    for before, after in zip(trained_run.reports, trained_run.reports[1:], strict=False):
        check_round(before, after, 4 * trained_run.info.n_params)
        times[after.cohort] += 1
        assert after.metrics["select/share_max"] == times.max() / after.step
        assert after.metrics["select/share_min"] == times.min() / after.step


def check_round(before: RoundReport, after: RoundReport, model_bytes: int) -> None:
    table, metrics = after.clients, after.metrics
    carries = "round/in_flight" in metrics
    was_in_flight, is_in_flight = (np.flatnonzero(report.clients.get("in_flight") == 1) for report in (before, after))
    rise = {
        name: metrics[name] - before.metrics[name]
        for name in {*metrics} & {*before.metrics}
        if name.startswith(("time/", "comm/"))
    }
    assert set(after.arrived) <= {*after.cohort, *was_in_flight}
    assert set(after.cohort) <= set(np.flatnonzero(table["available"]))
    n_lost = metrics["round/dropped_nonfinite"] + metrics.get("round/dropped_stale", 0)
    if not carries:
        n_lost += int((table["units"][after.cohort] == 0).sum())
    assert len(after.cohort) + len(was_in_flight) == len(after.arrived) + n_lost + len(is_in_flight)
    closed = metrics.get("round/closed_s", 0.0)
    on_time_ids = np.setdiff1d(after.arrived, was_in_flight)
    assert (table["finish_s"][on_time_ids] <= closed * (1 + 1e-9)).all()
    assert rise["time/virtual_s"] >= (metrics["round/waited_s"] + closed + 5 * bool(len(after.cohort))) * (1 - 1e-9)
    assert rise["comm/down_bytes"] >= model_bytes * len(after.cohort)
    assert rise["comm/up_bytes"] >= 0
    assert (table["weight"][after.arrived] >= 0).all()
    assert metrics["clients/acc_mean"] == pytest.approx(np.nanmean(table["test_acc"]))
    assert metrics["clients/acc_worst5"] <= metrics["clients/acc_mean"] <= metrics["clients/acc_best5"]
    assert metrics["clients/loss_mean"] == pytest.approx(table["loss"].mean())


@pytest.mark.parametrize("job", range(JOBS))
@failure_hint(
    "Keep everything that changes between rounds in the State, and reject impossible pairs in `requirements`."
)
def test_logged_costs_add_up_and_a_resumed_run_is_bit_identical(job: int, tables: Path, tmp_path: Path) -> None:
    for number, row in list(enumerate(ROWS))[job::JOBS]:
        overrides = list_overrides(row, tables)
        try:
            uninterrupted = run(tmp_path / f"{number}", *overrides, "rounds=3")
        except IncompatibleConfig:
            continue
        check_sums(uninterrupted)
        if number % 3 == 0:
            run(tmp_path / f"{number}-stopped", *overrides, "rounds=1", "client_store.limit_gb=0")
            resumed = run(tmp_path / f"{number}-stopped", *overrides, "rounds=3", "resume=true")
            assert same_bits(uninterrupted, resumed), row
            assert dict(uninterrupted.last.metrics) == dict(resumed.last.metrics), row
