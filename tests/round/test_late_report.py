"""The report of a round in which client 3 arrives two rounds late, 0 stays in flight, and 2 is dropped."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcohort.deadline.base import JOB_PHASES
from fedcohort.device.base import Timing
from fedcohort.round.in_flight import JobsInFlight
from fedcohort.round.late_report import add_late_clients, compute_lateness_metrics
from job_tables import make_jobs
from run_harness import run_training


def make_late_start() -> Any:
    """Client 5 started 4 s after the others: 1 s down, 2 s a unit and 1 s up, which last 10 s with an absence."""
    timing = Timing(np.ones(1), np.zeros(1), np.full(1, 2.0), np.ones(1))
    jobs = make_jobs(client=[5], start_s=[54.0], assigned=[3], duration_s=[10.0])
    return dataclasses.replace(jobs, timing=timing)


def make_round() -> Any:
    """Round 6: clients 0 and 1 were selected in it; 3 was in round 4, and 2, whose update is too old, in round 1."""
    return SimpleNamespace(
        round=6,
        dispatch=SimpleNamespace(jobs=make_jobs(client=[0, 1], start_s=[50.0, 50.0]), refill_jobs=make_late_start()),
        arrived_jobs=make_jobs(client=[1, 3], broadcast=[6, 4], duration_s=[2.0, 30.0], units=[5, 4], assigned=[5, 4]),
        staleness=np.array([0, 2]),
        jobs_in_flight=JobsInFlight(make_jobs(client=[0], broadcast=[6], bytes_up=[260.0])),
        dropped_jobs=make_jobs(client=[2], broadcast=[1]),
    )


def test_jobs_in_flight_and_the_staleness_of_updates_are_reported() -> None:
    assert compute_lateness_metrics(make_round()) == {
        "round/in_flight": 1,
        "comm/in_flight": 260,
        "round/dropped_stale": 1,
        "staleness/mean": 1,
        "staleness/max": 2,
    }


def test_late_arrivals_have_their_work_and_seconds_since_their_broadcast() -> None:
    cohort = np.array([0, 1])
    table: dict[str, Any] = {
        "units": (cohort, np.array([0, 5])),
        "units_asked": (cohort, np.array([5, 5])),
        "finish_s": (cohort, np.array([np.nan, 2.0])),
        **{f"{phase}_s": (cohort, np.zeros(2)) for phase in JOB_PHASES},
    }
    columns = add_late_clients(table, make_round())
    values = {
        name: dict(zip(np.asarray(ids).tolist(), column.tolist(), strict=True))
        for name, (ids, column) in columns.items()
    }
    assert values["units"] == {0: 0, 1: 5, 3: 4}
    assert values["units_asked"] == {0: 5, 1: 5, 3: 4}
    assert values["finish_s"][3] == 30
    assert values["sent_s"] == {0: 50, 1: 50, 5: 54}
    assert [values[f"{phase}_s"][5] for phase in JOB_PHASES] == [1.25, 0, 7.5, 1.25]
    assert (values["staleness"], values["in_flight"]) == ({1: 0, 3: 2}, {0: 1})


def test_attackers_are_named_among_late_arrivals_and_jobs_in_flight(tmp_path: Path) -> None:
    attack = ("attack=sign_flip", "attack.fraction=0.5", "deadline=fixed", "deadline.late_updates=carry")
    run = run_training(tmp_path, *attack, "device=shifted_exponential", "rounds=4")
    is_attacker, n_late_arrivals = run.reports[0].clients["attacker"], 0
    for report in run.reports[1:]:
        in_flight_ids = np.flatnonzero(report.clients["in_flight"] == 1)
        ids_with_job = np.unique(np.concatenate([report.cohort, report.arrived, in_flight_ids]))
        n_late_arrivals += len(np.setdiff1d(report.arrived, report.cohort))
        assert np.flatnonzero(~np.isnan(report.clients["attacker"])).tolist() == ids_with_job.tolist()
        assert report.clients["attacker"][ids_with_job].tolist() == is_attacker[ids_with_job].tolist()
    assert n_late_arrivals > 1
