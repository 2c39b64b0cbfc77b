import math

import numpy as np

from fedcohort.deadline.base import PaceContext, compute_outcome
from fedcohort.deadline.wait_for_all import WaitForAll
from fedcohort.device.base import Timing

T = np.array([1.0, 2, 3, 4, 10])
TIMING = Timing(np.zeros(5), np.zeros(5), T / 5, np.zeros(5))


def test_no_deadline_is_announced_and_the_slowest_closes_the_round() -> None:
    wait = WaitForAll(partial_work=False)
    deadline_s = wait.announce(None, PaceContext(0, np.arange(5), 5, TIMING, TIMING))
    assert deadline_s == math.inf
    assert wait.close(None, T, deadline_s) == 10
    assert wait.close(None, T[:0], deadline_s) == 0


def test_partial_work_has_no_effect() -> None:
    with_partial, without_partial = (
        compute_outcome(TIMING, 5, WaitForAll(partial).close(None, TIMING.finish_s(5), math.inf), partial)
        for partial in (True, False)
    )
    assert with_partial.units_done.tolist() == without_partial.units_done.tolist() == [5] * 5
    assert with_partial.train_s == without_partial.train_s == 10
