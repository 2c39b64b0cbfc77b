"""T = (1, 2, 3, 4, 10) has mean 4: 1T serves four of five, 2T = 8 four as well."""

from typing import cast

import numpy as np
import pytest

from config_options import make_component
from fedcohort.deadline.base import PaceContext, compute_outcome
from fedcohort.deadline.fixed import Fixed
from fedcohort.device.base import Timing

T = np.array([1.0, 2, 3, 4, 10])


def fixed_deadline(k: float, partial_work: bool = False) -> Fixed:
    """Return a deadline with the other options of its yaml file."""
    return cast(Fixed, make_component("deadline", "fixed", k=k, partial_work=partial_work))


def timing(finish: np.ndarray, units: int) -> Timing:
    """A tenth of the time goes into each of download, inference and upload."""
    return Timing(finish / 10, finish / 10, 0.7 * finish / units, finish / 10)


def context(selected: list[int], units: int = 5) -> PaceContext:
    return PaceContext(3, np.array(selected), units, timing(T, units), timing(T[selected], units))


@pytest.mark.parametrize(("k", "deadline", "completed"), [(1.0, 4, 4), (2.0, 8, 4), (2.5, 10, 5), (0.5, 2, 2)])
def test_the_deadline_of_the_specifications_example(k: float, deadline: float, completed: int) -> None:
    fixed, ctx = fixed_deadline(k), context([0, 1, 2, 3, 4])
    deadline_s = fixed.announce(None, ctx)
    assert deadline_s == pytest.approx(deadline, rel=1e-12)
    outcome = compute_outcome(ctx.expected, 5, fixed.close(None, T, deadline_s) + 1e-9, fixed.partial_work)
    assert outcome.is_in_time.sum() == completed


def test_the_mean_is_over_all_clients_not_over_the_selected() -> None:
    fixed = fixed_deadline(1.0)
    assert fixed.announce(None, context([0])) == fixed.announce(None, context([3, 4])) == pytest.approx(4)


@pytest.mark.parametrize("units", [1, 5, 12])
def test_the_deadline_is_for_the_whole_job(units: int) -> None:
    assert fixed_deadline(1.0).announce(None, context([0], units)) == pytest.approx(4)


def test_partial_work_keeps_the_slowest() -> None:
    """Client 4 travels and infers for 3 s, an epoch takes it 1.4 s: 1 s left is no epoch, at 2T 5 s left are three."""
    ctx = context([0, 1, 2, 3, 4])
    for k, units in ((1.0, 0), (2.0, 3)):
        fixed = fixed_deadline(k, partial_work=True)
        outcome = compute_outcome(ctx.expected, 5, fixed.close(None, T, fixed.announce(None, ctx)), fixed.partial_work)
        assert outcome.units_done[4] == units
