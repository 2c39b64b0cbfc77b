"""Each query is charged once: a round's cost is the sum over its rows of the client table.

The model is logistic regression (no buffers), a device takes one second a sample-time, and links take no time.
E epochs over n_k samples last n_k seconds, and a forward pass over them n_k / (3 E). A round then costs

    down     4 P |Q + S|                              Q: queried, S: selected, each client once; P: parameters
    up       4 P |A| + 4 (values that were answered)  A: arrived
    FLOPs    F (sum_Q passes_k + 3 E sum_S n_k)       F: of a sample's forward pass
    seconds  waited + q + c                           blocking query: c the last answer of S
             waited + max(q, c)                       concurrent query

where q is the longest query of the selector. A query that the aggregator alone makes is a part of the job: c has it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from config_options import list_aliases, list_options, make_component
from failure_hints import failure_hint
from fedcohort.signal.base import Measured, QueriedSignal, find_signal
from run_harness import FinishedRun, run_training

K, EPOCHS = 12, 2
PARAMETERS, FORWARD = 64 * 10 + 10, 2 * 64 * 10  # sizes of logistic regression on 8 x 8 digits
MODEL = 4 * PARAMETERS
JOURNAL_ONLY = ("callback=default", "callback.figures=null", "callback.summary=null", "callback.progress=null")
SMALL = (
    *("split.limit=240", "eval.every=9", "eval.clients_every=0", "rounds=2"),
    *(f"clients={K}", f"client.epochs={EPOCHS}"),
)
OPTIONS = {
    "rpowd": {"loss_at": "start"},
    "feel": {"importance": "grad"},
}  # options with which the selector makes a query
CONCURRENT = {"low_ratio", "rpowd", "flash", "tifl"}
COSTS = ("comm/down_bytes", "comm/up_bytes", "comp/client_flops", "time/virtual_s")
Passes = Callable[[np.ndarray, np.ndarray], np.ndarray]  # n_train and n_val of clients -> samples' forward passes
PASSES: dict[str, Passes] = {
    "loss": lambda n, n_val: n,
    "robust_loss": lambda n, n_val: n,
    "val_loss": lambda n, n_val: n_val,
    "val_accuracy": lambda n, n_val: n_val,
    "grad_norm": lambda n, n_val: 3 * n,
}


def queries(group: str, choice: str) -> frozenset[str]:
    """Return the signals that a selector or an aggregator queries."""
    kind = QueriedSignal if group == "selector" else Measured
    part = make_component(group, choice, **(OPTIONS.get(choice, {}) if group == "selector" else {}))
    return frozenset(name for name in part.needs if isinstance(find_signal(name), kind))


def list_queriers(group: str) -> dict[str, frozenset[str]]:
    """Return the options of a group that make a query, with their signals."""
    choices = [*list_options(group), *list_aliases(group)]
    return {choice: signals for choice in choices if (signals := queries(group, choice))}


SELECTORS, AGGS = list_queriers("selector"), list_queriers("agg")
PAIRS = [(s, a) for s, a in itertools.product(SELECTORS, AGGS) if SELECTORS[s] & AGGS[a]]


def run_selector(logs: Path, selector: str, agg: str, *overrides: str) -> FinishedRun:
    options = [f"selector.{name}={value}" for name, value in OPTIONS.get(selector, {}).items()]
    parts = (f"selector={selector}", f"agg={agg}", *options, "device=shifted_exponential", "device.lam=0")
    return run_training(logs, *SMALL, *JOURNAL_ONLY, *parts, *overrides)


@dataclass(frozen=True)
class Closed:
    """Recomputes the costs of a run's rounds from its table of clients.

    Attributes:
        signals: signals that are queried in each round.
        concurrent: whether the selector's query runs while clients train.
        by_selector: whether the selector makes a query; False if only the aggregator does.
    """

    run: FinishedRun
    signals: frozenset[str]
    concurrent: bool
    by_selector: bool = True

    def costs(self, step: int, rows: pd.DataFrame) -> list[float]:
        """Return the costs of a round, in the order of COSTS, from its rows of the clients table."""
        n = self.run.info.n_train
        n_val = self.run.info.class_counts.sum(1) - n
        queried, selected = (rows.client[rows[flag]].to_numpy() for flag in ("queried", "selected"))
        passes = sum(PASSES[signal](n[queried], n_val[queried]) for signal in self.signals)
        answers = sum(len(self._find_answers(signal, rows)) for signal in self.signals)
        query_s = float(np.max(passes, initial=0.0)) / (3 * EPOCHS) if self.by_selector else 0.0
        metrics = self.run.reports[step].metrics
        closed_s = metrics["round/closed_s"]
        busy_s = max(query_s, closed_s) if self.concurrent else query_s + closed_s
        return [
            float(MODEL * len(np.union1d(queried, selected))),
            float(MODEL * rows.arrived.sum() + 4 * answers),
            float(FORWARD * (np.sum(passes) + 3 * EPOCHS * n[selected].sum())),
            metrics["round/waited_s"] + busy_s,
        ]

    def _find_answers(self, signal: str, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of clients that answered. All clients answer an aggregator, without a column in the table."""
        return rows[rows[f"signal_{signal}"].notna() if self.by_selector else rows.queried]


def check(closed: Closed) -> pd.DataFrame:
    """Compare the journal with the table that was written; return the table."""
    table = pd.read_parquet(closed.run.folder / "clients.parquet")
    for before, after in itertools.pairwise(closed.run.reports):
        rows = table[table.step == after.step]
        rise = [after.metrics[name] - before.metrics[name] for name in COSTS]
        assert rise == pytest.approx(closed.costs(after.step, rows), rel=1e-9), after.step
        assert set(rows.client[rows.queried]) == set(np.flatnonzero(after.clients["queried"]))
    return table


def test_the_pairs_have_blocking_and_concurrent_queries() -> None:
    assert {"powd", "fedcor", "low_ratio", "rpowd"} <= {selector for selector, _ in PAIRS}
    assert {"qffl", "afl", "term", "fedmaba"} <= {agg for _, agg in PAIRS}


@pytest.mark.parametrize(("selector", "agg"), PAIRS)
@failure_hint(
    "Name the signal in `needs` of both; the round charges it once, and `bytes_up` and `passes` state its cost."
)
def test_a_query_of_selector_and_aggregator_is_charged_once(selector: str, agg: str, tmp_path: Path) -> None:
    """A job does not repeat the selector's query, so that it lasts as long as its training."""
    run = run_selector(tmp_path, selector, agg)
    table = check(Closed(run, frozenset(SELECTORS[selector] & AGGS[agg]), selector in CONCURRENT))
    jobs = table[table.arrived]
    assert jobs.finish_s.to_numpy() == pytest.approx(run.info.n_train[jobs.client].astype(float))


@pytest.mark.parametrize("selector", ["powd", "low_ratio", "rpowd", "fedcor", "feel", "flash", "tifl"])
@failure_hint("Return each query from `plan` as a Probe to clients of `ctx.ready`; state its cost in the signal.")
def test_the_selectors_queries_are_in_the_clients_table(selector: str, tmp_path: Path) -> None:
    signals = SELECTORS[selector] - {"shadow_loss"}  # which FedCor queries after its warm-up
    table = check(Closed(run_selector(tmp_path, selector, "fedavg"), signals, selector in CONCURRENT))
    assert table.queried[table.step > 0].any()
    assert not table.queried[table.step == 0].any()


@failure_hint(
    "Name the signal in the aggregator's `needs`: it is then a part of each job, and its seconds are charged."
)
def test_the_aggregators_queries_are_in_the_clients_table(tmp_path: Path) -> None:
    """The aggregator queries the clients that train, which makes their jobs one forward pass longer."""
    run = run_selector(tmp_path, "random", "qffl")
    table = check(Closed(run, AGGS["qffl"], concurrent=False, by_selector=False))
    assert (table.queried == table.selected).all()
    jobs = table[table.arrived]
    n = run.info.n_train[jobs.client]
    assert jobs.finish_s.to_numpy() == pytest.approx(n * (1 + 1 / (3 * EPOCHS)))


@pytest.mark.parametrize("selector", ["powd", "low_ratio"])
@failure_hint("Accept missing answers in `select`: a client that leaves is charged, but absent from the ProbeResult.")
def test_a_client_that_leaves_before_it_answers_is_charged_and_recorded(selector: str, tmp_path: Path) -> None:
    """Clients with even ids leave a second after the start, before they can answer."""
    ready = [f"{k},0,{1 if k % 2 == 0 else 5000}" for k in range(K)]
    (tmp_path / "ready.csv").write_text("\n".join(["client,start_s,end_s", *ready]))
    trace = ("availability=trace", f"availability.path={tmp_path / 'ready.csv'}", "availability.period_s=5000")
    table = check(
        Closed(run_selector(tmp_path, selector, "fedavg", *trace), SELECTORS[selector], selector in CONCURRENT)
    )
    unanswered = table[table.queried & table.signal_loss.isna()]
    assert len(unanswered)
    assert (unanswered.client % 2 == 0).all()
