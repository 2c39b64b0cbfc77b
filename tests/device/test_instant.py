import numpy as np

from fedcohort.device.base import Workload
from fedcohort.device.instant import Instant
from fedcohort.rng import Draws


def test_every_phase_takes_zero_seconds_whatever_the_work() -> None:
    clients = np.array([1, 4, 5])
    work = Workload(np.array([9.0, 1, 2]), np.array([3.0, 3, 3]), 5, np.full(3, 1e9), np.full(3, 1e9))
    for timing in (Instant().sample(clients, work, Draws(0, 6, 2)), Instant().expect(clients, work, Draws(0, 6))):
        assert timing.finish_s(5).tolist() == [0, 0, 0]
        assert timing.query_s().tolist() == [0, 0, 0]


def test_durations_carry_no_information() -> None:
    assert not Instant.timed
