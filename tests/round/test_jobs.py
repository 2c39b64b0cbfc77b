"""Rows of the table of jobs."""

from dataclasses import fields

import numpy as np

from fedcohort.device.base import Timing
from fedcohort.round.jobs import Jobs
from selector_harness import ids


def test_selecting_rows_applies_to_every_column() -> None:
    seconds = np.array([1.0, 2.0, 3.0])
    timing = Timing(seconds, seconds, seconds, seconds)
    rows, units = [ids(7), None, ids(8, 9)], ids(4, 5, 6)
    flags = np.array([True, False, False])
    requested = (ids(1, 2, 3), ids(0, 0, 1), flags, units, units, seconds, rows, flags, seconds)
    jobs = Jobs(*requested, seconds, timing, rows, rows, timing, seconds)
    selected = jobs.select_jobs(np.array([True, False, True]))
    assert (len(jobs), len(selected), selected.client.tolist(), selected.plain.tolist()) == (
        3,
        2,
        [1, 3],
        [True, False],
    )
    assert (selected.rows, selected.tensor_mask, selected.losses) == ([rows[0], rows[2]],) * 3
    assert selected.timing.unit_s.tolist() == selected.duration_s.tolist() == [1.0, 3.0]
    assert selected.end_s.tolist() == [2.0, 6.0]
    for field in fields(Jobs):
        column = getattr(selected, field.name)
        assert len(column.up_s if isinstance(column, Timing) else column) == 2, field.name
