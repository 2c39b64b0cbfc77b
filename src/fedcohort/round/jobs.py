"""The table of jobs: the local work that a round sends to clients."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.device.base import Timing
from fedcohort.training.upload import TensorMask
from fedcohort.types import Ids, ReadOnly, Values

NO_JOB_TIMING = Timing(*(np.empty(0) for _ in range(4)))


@dataclass(frozen=True)
class Jobs(ReadOnly):
    """The local work of a round: a table with one row per selected client, sorted by id.

    The fields are arrays and lists of arrays only, so that jobs can be saved. They are filled in three steps: the
    assignment (up to `bytes_up`), the announcement and choice of samples (`announced_s` to `losses`), and the times
    (`timing`, `duration_s`). The deadline then reduces `units` and `duration_s`. A unit of local work is an epoch or a
    step.

    Attributes:
        client: ids, [m].
        broadcast: round whose global model the client received, [m].
        plain: whether the client trains as in FedAvg, whatever the run's aggregator (`Selection.plain`), [m].
        assigned: units of local work that the client received, [m].
        units: units of local work that the client completes; 0 for a dropped client, [m].
        start_s: virtual second at which the job begins, [m].
        tensor_mask: tensors of the update that the client sends, None for all.
        zero_fill: whether the other tensors count as zero in the mean (`Selection.zero_fill`), [m].
        bytes_up: bytes that the client uploads, [m].
        announced_s: deadline that was announced to the client, in seconds after its start; inf without one, [m].
        expected: expected timing on all of the client's samples, including forward passes before and after training.
        rows: positions of the samples that the client trains on, None for all.
        losses: losses of the client's samples before the training, in nats; None for a client that keeps no losses.
        timing: seconds of the phases of the job without absences.
        duration_s: seconds from the start to the arrival of the update, with absences, [m].
    """

    client: Ids
    broadcast: Ids
    plain: Bool[np.ndarray, "_m"]
    assigned: Ids
    units: Ids
    start_s: Values
    tensor_mask: Sequence[TensorMask | None]
    zero_fill: Bool[np.ndarray, "_m"]
    bytes_up: Values
    announced_s: Values = field(default_factory=lambda: np.empty(0))
    expected: Timing = NO_JOB_TIMING
    rows: Sequence[Ids | None] = ()
    losses: Sequence[Values | None] = ()
    timing: Timing = NO_JOB_TIMING
    duration_s: Values = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.client)

    @property
    def end_s(self) -> Values:
        """Virtual second at which each client's update arrives, [m]."""
        return np.asarray(self.start_s + self.duration_s)

    @property
    def expected_end_s(self) -> Values:
        """Virtual second at which each client's update is expected to arrive, [m]."""
        return np.asarray(self.start_s + self.expected.finish_s(self.assigned))

    def select_jobs(self, is_job_selected: Bool[np.ndarray, "_m"]) -> "Jobs":
        """Return the table with only the jobs that are marked in `is_job_selected`, bool [m]."""
        return self if is_job_selected.all() else self.reorder_jobs(np.flatnonzero(is_job_selected))

    def reorder_jobs(self, job_rows: Ids) -> "Jobs":
        """Return the table with the jobs in `job_rows`, positions in the table, in this order."""
        return Jobs(**{f.name: _select_column_rows(getattr(self, f.name), job_rows) for f in fields(self)})

    def drop_list_columns(self) -> "Jobs":
        """Return the table without its columns of lists, which take the longest to join."""
        return replace(self, tensor_mask=(), rows=(), losses=())

    def merge_jobs(self, other_jobs: "Jobs") -> "Jobs":
        """Return the table with these and `other_jobs`, sorted by client; no client has a job in both."""
        if not len(other_jobs):
            return self
        row_order = np.argsort(np.concatenate([self.client, other_jobs.client]))
        return Jobs(
            **{
                f.name: _select_column_rows(
                    _join_columns(getattr(self, f.name), getattr(other_jobs, f.name)), row_order
                )
                for f in fields(self)
            }
        )


def _join_columns(job_column: Any, other_column: Any) -> Any:  # noqa: ANN401  arrays, timings and lists
    if isinstance(job_column, np.ndarray):
        return np.concatenate([job_column, other_column])
    if isinstance(job_column, Timing):
        return Timing(
            *(np.concatenate([getattr(t, f.name) for t in (job_column, other_column)]) for f in fields(Timing))
        )
    return [*job_column, *other_column]


def _select_column_rows(job_column: Any, selected_rows: Ids) -> Any:  # noqa: ANN401  arrays, timings and lists
    if isinstance(job_column, np.ndarray):
        return job_column[selected_rows]
    if isinstance(job_column, Timing):
        return Timing(*(getattr(job_column, f.name)[selected_rows] for f in fields(Timing)))
    return [job_column[i] for i in selected_rows.tolist()] if job_column else job_column


NO_JOBS = Jobs(
    client=np.empty(0, np.int64),
    broadcast=np.empty(0, np.int64),
    plain=np.empty(0, bool),
    assigned=np.empty(0, np.int64),
    units=np.empty(0, np.int64),
    start_s=np.empty(0),
    tensor_mask=[],
    zero_fill=np.empty(0, bool),
    bytes_up=np.empty(0),
)
