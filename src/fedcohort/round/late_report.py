"""Metrics and per-client columns of runs whose deadline lets late clients go on working."""

from collections.abc import Mapping

import numpy as np

from fedcohort.deadline.base import JOB_PHASES
from fedcohort.round.finish import Finished
from fedcohort.round.jobs import Jobs
from fedcohort.types import Ids

Column = tuple[Ids | None, np.ndarray]  # ids, None for all clients, and the values of these


def add_late_columns(table: Mapping[str, Column], finished: Finished) -> dict[str, Column]:
    """Return the columns of a round with the clients of earlier rounds that arrived in it, and with the jobs in flight.

    Args:
        table: columns of the round's cohort, by name.
        finished: the round.
    """
    refilled = finished.dispatched.refilled
    table = {**table, **_join_refilled(table, refilled)}
    landed_jobs = finished.arrived.select_jobs(~np.isin(finished.arrived.client, finished.dispatched.jobs.client))
    late_values = {"units": landed_jobs.units, "units_asked": landed_jobs.assigned, "finish_s": landed_jobs.duration_s}
    columns = dict(table)
    for name, values in late_values.items():
        ids, cohort_values = table[name]
        columns[name] = (np.concatenate([np.asarray(ids), landed_jobs.client]), np.concatenate([cohort_values, values]))
    in_flight_ids = finished.in_flight.jobs.client
    sent_jobs = finished.dispatched.jobs.joined_with(refilled)
    return {
        **columns,
        "sent_s": (sent_jobs.client, sent_jobs.start_s),
        "staleness": (finished.arrived.client, finished.staleness.astype(np.float64)),
        "in_flight": (in_flight_ids, np.ones(len(in_flight_ids))),
    }


def _join_refilled(table: Mapping[str, Column], refilled: Jobs) -> dict[str, Column]:
    """Return the seconds of the phases, with those of clients that started during the round, by column name.

    Absences are distributed over their phases, so that these add up to the duration of the job.
    """
    timing = refilled.timing
    work_s = np.array([timing.down_s, timing.infer_s, timing.unit_s * refilled.assigned, timing.up_s])
    slowdown = refilled.duration_s / np.where(work_s.sum(0) > 0, work_s.sum(0), 1.0)
    columns: dict[str, Column] = {}
    for phase, phase_seconds in zip(JOB_PHASES, work_s * slowdown, strict=True):
        client_ids, cohort_seconds = table[f"{phase}_s"]
        all_ids = np.concatenate([np.asarray(client_ids), refilled.client])
        columns[f"{phase}_s"] = (all_ids, np.concatenate([cohort_seconds, phase_seconds]))
    return columns


def late_metrics(finished: Finished) -> dict[str, float]:
    """Return the metrics of the jobs in flight and of the staleness of a round's updates, by name."""
    staleness, in_flight = finished.staleness, finished.in_flight.jobs
    is_dropped_late = finished.dropped.broadcast < finished.round
    metrics = {
        "round/in_flight": float(len(in_flight)),
        "round/dropped_stale": float(is_dropped_late.sum()),
        "comm/in_flight": float(in_flight.bytes_up.sum()),
    }
    if len(staleness):
        metrics |= {"staleness/mean": float(staleness.mean()), "staleness/max": float(staleness.max())}
    return metrics
