"""Losses that clients measured before the round closed are kept, and later ones are not."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcohort.device.base import Timing
from fedcohort.ledger import Charge
from fedcohort.rng import Draws
from fedcohort.round.dispatch_record import Dispatch, QueryRecord
from fedcohort.round.finish import close_round
from fedcohort.round.in_flight import JobsInFlight
from fedcohort.round.jobs import Jobs
from fedcohort.types import Selection
from selector_harness import make_context

CLIENTS, ONE_UNIT = np.array([0, 2, 5]), np.ones(3, np.int64)
NONE = np.empty(0, np.int64)


def make_dispatch(timing: Timing) -> Dispatch:
    """Return a round in which all three clients measure the losses of their samples."""
    jobs = Jobs(
        CLIENTS,
        0 * ONE_UNIT,
        np.zeros(3, bool),
        ONE_UNIT,
        ONE_UNIT,
        np.zeros(3),
        [None] * 3,
        np.zeros(3, bool),
        np.zeros(3),
        np.full(3, np.inf),
        timing,
        [None] * 3,
        [None] * 3,
        timing,
        timing.finish_s(1),
    )
    losses = {int(client): np.ones(1) for client in CLIENTS}
    query_record = QueryRecord((), {}, 0.5, 0.0, np.zeros(6, bool))
    return Dispatch(
        0, make_context(0), CLIENTS, Selection(CLIENTS), None, query_record, jobs, losses, 0.0, 0.25, 0.75, np.inf, NONE
    )


STATE = SimpleNamespace(deadline=None, in_flight=JobsInFlight())


def dispatcher(closes_s: float) -> Any:
    """Return a server that closes each round after `closes_s` seconds; a client's losses cost 1 FLOP per sample."""
    deadline = SimpleNamespace(
        close=lambda state, duration_s, announced: closes_s,
        discount=lambda staleness: np.ones(len(staleness)),
        partial_work=False,
        carries=False,
        arrival_limit=lambda state: None,
        staleness_limit=lambda: None,
        awaited_staleness=lambda: None,
    )
    cost_model = SimpleNamespace(
        select_job_costs=lambda plain: SimpleNamespace(queried_signals={}),
        count_samples=lambda clients, rows: np.full(len(clients), 4),
        count_sample_uses=lambda used, units: 1.0 * used * units,
        charge_round=lambda *args: Charge(up_bytes=8.0),
        pass_flops=1.0,
    )
    return SimpleNamespace(
        components=SimpleNamespace(deadline=deadline, agg=SimpleNamespace(weights=lambda used, n: used / n)),
        cost_model=cost_model,
        federation=SimpleNamespace(n_train=np.arange(10, 16), draws=lambda seed, round: Draws(seed, 6, round)),
        settings=SimpleNamespace(seed=0),
        clock=SimpleNamespace(wall_time=lambda start_s: lambda clients, seconds: seconds),
    )


def test_losses_that_are_measured_until_the_round_closes_are_kept() -> None:
    """Measured at 2, 3 and 4 seconds, and complete at 3, 4 and 5. The round closes at 3: one client arrives.

    It lasts .25 + .5 + 3 seconds. All three measured their 10 + 12 + 15 samples, which is charged.
    """
    measured = np.array([2.0, 3.0, 4.0])
    timing = Timing(measured - 1, np.ones(3), np.full(3, 0.75), np.full(3, 0.25))
    finished = close_round(make_dispatch(timing), dispatcher(3.0), STATE)  # type: ignore[arg-type]
    assert sorted(finished.initial_losses) == [0, 2]
    assert (finished.arrived_jobs.client.tolist(), finished.dropped_jobs.client.tolist()) == ([0], [2, 5])
    assert len(finished.jobs_in_flight) == 0
    assert finished.charge == Charge(up_bytes=8.0, client_flops=37.0, virtual_s=3.75)
    assert (finished.processed_samples.tolist(), finished.client_weights.tolist()) == ([4], [0.4])
