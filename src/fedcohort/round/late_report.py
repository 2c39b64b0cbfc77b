"""Metrics and per-client columns of runs whose deadline lets late clients continue into later rounds."""

from collections.abc import Mapping

import numpy as np

from fedcohort.deadline.base import JOB_PHASES
from fedcohort.round.finish import ClosedRound
from fedcohort.round.jobs import Jobs
from fedcohort.types import Ids

ClientColumn = tuple[Ids | None, np.ndarray]  # ids, None for all clients, and the values of these


def add_late_clients(cohort_columns: Mapping[str, ClientColumn], closed_round: ClosedRound) -> dict[str, ClientColumn]:
    """Return a round's per-client columns, extended by clients of earlier rounds that arrived and by jobs in flight.

    Args:
        cohort_columns: ids and values of the round's cohort, by column name.
        closed_round: the round after it has closed.
    """
    refill_jobs, arrived_jobs = closed_round.dispatch.refill_jobs, closed_round.arrived_jobs
    cohort_columns = {**cohort_columns, **_add_refilled_clients(cohort_columns, refill_jobs)}
    late_jobs = arrived_jobs.select_jobs(~np.isin(arrived_jobs.client, closed_round.dispatch.jobs.client))
    late_columns = {"units": late_jobs.units, "units_asked": late_jobs.assigned, "finish_s": late_jobs.duration_s}
    columns = dict(cohort_columns)
    for k, v in late_columns.items():
        cohort_ids, cohort_column = cohort_columns[k]
        columns[k] = (np.concatenate([np.asarray(cohort_ids), late_jobs.client]), np.concatenate([cohort_column, v]))
    in_flight_ids = closed_round.jobs_in_flight.jobs.client
    started_jobs = closed_round.dispatch.jobs.merge_jobs(refill_jobs)
    return {
        **columns,
        "sent_s": (started_jobs.client, started_jobs.start_s),
        "staleness": (arrived_jobs.client, closed_round.staleness.astype(np.float64)),
        "in_flight": (in_flight_ids, np.ones(len(in_flight_ids))),
    }


def _add_refilled_clients(cohort_columns: Mapping[str, ClientColumn], refill_jobs: Jobs) -> dict[str, ClientColumn]:
    """Return the seconds of each phase of the jobs, including jobs that started during the round, by column name.

    Absences are distributed over their phases, so that these add up to the duration of the job. `cohort_columns` are
    the columns of the round's first cohort by name; `refill_jobs` are the jobs of the clients that started later.
    """
    phase_work_s = np.array(
        [
            refill_jobs.timing.down_s,
            refill_jobs.timing.infer_s,
            refill_jobs.timing.unit_s * refill_jobs.assigned,
            refill_jobs.timing.up_s,
        ]
    )
    slowdown_by_absence = refill_jobs.duration_s / np.where(phase_work_s.sum(0) > 0, phase_work_s.sum(0), 1.0)
    phase_columns: dict[str, ClientColumn] = {}
    phase_s = np.multiply(phase_work_s, slowdown_by_absence, out=np.zeros_like(phase_work_s), where=phase_work_s > 0)
    for phase_name, phase_seconds in zip(JOB_PHASES, phase_s, strict=True):
        cohort_ids, cohort_phase_s = cohort_columns[f"{phase_name}_s"]
        client_ids = np.concatenate([np.asarray(cohort_ids), refill_jobs.client])
        phase_columns[f"{phase_name}_s"] = (client_ids, np.concatenate([cohort_phase_s, phase_seconds]))
    return phase_columns


def compute_lateness_metrics(closed_round: ClosedRound) -> dict[str, float]:
    """Return the metrics of jobs in flight and of the staleness of the updates in the round `closed_round`, by name."""
    staleness, jobs_in_flight = closed_round.staleness, closed_round.jobs_in_flight.jobs
    lateness_metrics = {
        "round/in_flight": float(len(jobs_in_flight)),
        "round/dropped_stale": float((closed_round.dropped_jobs.broadcast < closed_round.round).sum()),
        "comm/in_flight": float(jobs_in_flight.bytes_up.sum()),
    }
    if len(staleness):
        lateness_metrics |= {"staleness/mean": float(staleness.mean()), "staleness/max": float(staleness.max())}
    return lateness_metrics
