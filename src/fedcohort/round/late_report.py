"""Metrics and per-client columns of runs whose deadline lets late clients go on working."""

from collections.abc import Mapping

import numpy as np

from fedcohort.deadline.base import JOB_PHASES
from fedcohort.round.finish import RoundEnd
from fedcohort.round.jobs import Jobs
from fedcohort.types import Ids

Column = tuple[Ids | None, np.ndarray]  # ids, None for all clients, and the values of these


def add_late_columns(cohort_columns: Mapping[str, Column], round_end: RoundEnd) -> dict[str, Column]:
    """Return a round's per-client columns with clients of earlier rounds that arrived, and with jobs in flight.

    Args:
        cohort_columns: ids and values of the round's cohort, by column name.
        round_end: the round after it has closed.
    """
    refills = round_end.dispatch.refills
    cohort_columns = {**cohort_columns, **_add_refilled_clients(cohort_columns, refills)}
    landed_jobs = round_end.arrived.select_jobs(~np.isin(round_end.arrived.client, round_end.dispatch.jobs.client))
    late_values = {"units": landed_jobs.units, "units_asked": landed_jobs.assigned, "finish_s": landed_jobs.duration_s}
    columns = dict(cohort_columns)
    for name, values in late_values.items():
        ids, cohort_values = cohort_columns[name]
        columns[name] = (np.concatenate([np.asarray(ids), landed_jobs.client]), np.concatenate([cohort_values, values]))
    in_flight_ids = round_end.in_flight.jobs.client
    sent_jobs = round_end.dispatch.jobs.joined_with(refills)
    return {
        **columns,
        "sent_s": (sent_jobs.client, sent_jobs.start_s),
        "staleness": (round_end.arrived.client, round_end.staleness.astype(np.float64)),
        "in_flight": (in_flight_ids, np.ones(len(in_flight_ids))),
    }


def _add_refilled_clients(cohort_columns: Mapping[str, Column], refills: Jobs) -> dict[str, Column]:
    """Return the seconds of the phases, with those of clients that started during the round, by column name.

    Absences are distributed over their phases, so that these add up to the duration of the job. `cohort_columns` are
    the columns of the round's first cohort by name; `refills` are the jobs of the clients that started later.
    """
    timing = refills.timing
    work_s = np.array([timing.down_s, timing.infer_s, timing.unit_s * refills.assigned, timing.up_s])
    slowdown = refills.duration_s / np.where(work_s.sum(0) > 0, work_s.sum(0), 1.0)
    new_columns: dict[str, Column] = {}
    for phase_name, phase_seconds in zip(JOB_PHASES, work_s * slowdown, strict=True):
        client_ids, cohort_seconds = cohort_columns[f"{phase_name}_s"]
        all_ids = np.concatenate([np.asarray(client_ids), refills.client])
        new_columns[f"{phase_name}_s"] = (all_ids, np.concatenate([cohort_seconds, phase_seconds]))
    return new_columns


def compute_lateness_metrics(round_end: RoundEnd) -> dict[str, float]:
    """Return the metrics of jobs in flight and of the staleness of the updates in the round `round_end`, by name."""
    staleness, in_flight = round_end.staleness, round_end.in_flight.jobs
    is_dropped_late = round_end.dropped_jobs.broadcast < round_end.round
    lateness_metrics = {
        "round/in_flight": float(len(in_flight)),
        "round/dropped_stale": float(is_dropped_late.sum()),
        "comm/in_flight": float(in_flight.bytes_up.sum()),
    }
    if len(staleness):
        lateness_metrics |= {"staleness/mean": float(staleness.mean()), "staleness/max": float(staleness.max())}
    return lateness_metrics
