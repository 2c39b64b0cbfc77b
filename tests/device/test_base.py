"""Whole jobs that the virtual clock can't tell are rejected."""

import numpy as np
import pytest

from fedcohort.device.base import check_job_durations
from fedcohort.errors import IncompatibleConfig

N = np.array([10, 0, 30])


@pytest.mark.parametrize("seconds", [np.inf, np.nan, 0.0, 0.9e-9, 1.1e12])
def test_a_job_duration_out_of_range_is_rejected(seconds: float) -> None:
    with pytest.raises(IncompatibleConfig, match=r"the whole job of client 2, with 30 samples, .*client.epochs"):
        check_job_durations(np.array([1.0, 1.0, seconds]), N)


def test_jobs_inside_the_clock_and_clients_without_samples_are_accepted() -> None:
    check_job_durations(np.array([1e-9, 0.0, 1e12]), N)


def test_a_client_with_one_sample_has_a_job() -> None:
    with pytest.raises(IncompatibleConfig, match="the whole job of client 1, with 1 sample,"):
        check_job_durations(np.array([1.0, np.inf]), np.array([0, 1]))
