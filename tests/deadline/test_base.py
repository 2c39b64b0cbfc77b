"""`compute_outcome`: which clients arrive by a closing time, and when."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.deadline.base import compute_outcome
from fedcohort.device.base import Timing


def timing(*unit: float, down: float = 2, infer: float = 1, up: float = 3) -> Timing:
    size = len(unit)
    return Timing(np.full(size, float(down)), np.full(size, float(infer)), np.array(unit), np.full(size, float(up)))


def test_partial_epochs_of_the_specification() -> None:
    """Deadline 20, down 2, up 3, inference 1, epoch 4, E = 5: 14 seconds left are 3 epochs."""
    deadline_outcome = compute_outcome(timing(4.0), 5, 20.0, partial_work=True)
    assert deadline_outcome.units_done.tolist() == [3]
    assert deadline_outcome.finish_s.tolist() == [2 + 1 + 3 * 4 + 3]
    assert deadline_outcome.train_s == 18


def test_less_than_one_epoch_is_dropped_and_the_whole_deadline_is_charged() -> None:
    deadline_outcome = compute_outcome(timing(4.0, 15.0), 5, 20.0, partial_work=True)
    assert deadline_outcome.units_done.tolist() == [3, 0]
    assert deadline_outcome.is_in_time.tolist() == [True, False]
    assert deadline_outcome.train_s == 20


@pytest.mark.parametrize("partial_work", [False, True])
def test_a_client_exactly_at_the_deadline_arrives(partial_work: bool) -> None:
    deadline_outcome = compute_outcome(timing(2.8), 5, 20.0, partial_work)
    assert deadline_outcome.units_done.tolist() == [5]
    assert deadline_outcome.train_s == 20


def test_without_partial_work_late_clients_contribute_nothing() -> None:
    deadline_outcome = compute_outcome(timing(2.0, 4.0), 5, 20.0, partial_work=False)
    assert deadline_outcome.units_done.tolist() == [5, 0]
    assert deadline_outcome.train_s == 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("partial_work", [False, True])
def test_a_late_upload_is_late_even_without_training_time(partial_work: bool) -> None:
    deadline_outcome = compute_outcome(timing(0.0, down=30), 5, 20.0, partial_work)
    assert deadline_outcome.units_done.tolist() == [0]
    assert not deadline_outcome.is_in_time.any()


def test_partial_work_is_the_largest_number_of_units_that_fit() -> None:
    unit = np.random.default_rng(0).exponential(3.0, 500)
    timings = timing(*unit)
    deadline_outcome = compute_outcome(timings, 5, 17.0, partial_work=True)
    assert (timings.finish_s(deadline_outcome.units_done)[deadline_outcome.is_in_time] <= 17 + 1e-6).all()
    is_partial = deadline_outcome.units_done < 5
    assert 100 < is_partial.sum() < 500
    assert (timings.finish_s(deadline_outcome.units_done + 1)[is_partial] > 17).all()


def test_no_deadline_and_an_empty_cohort() -> None:
    assert compute_outcome(timing(1.0, 9.0), 5, np.inf, partial_work=True).train_s == 51
    assert compute_outcome(timing(), 5, 10.0, partial_work=False).train_s == 0


@pytest.mark.parametrize(("partial_work", "units"), [(True, [8, 5, 5]), (False, [8, 0, 5])])
def test_clients_can_have_different_amounts_of_work(partial_work: bool, units: list[int]) -> None:
    """2, 4 and 4 s a unit: 16, 56 and 20 s are asked; the 20 s that travel and inference leave hold five of 4 s."""
    timings = timing(2.0, 4.0, 4.0)
    fixed_s = timings.down_s + timings.infer_s + timings.up_s
    deadline_outcome = compute_outcome(timings, np.array([8, 14, 5]), float(fixed_s[0]) + 20.0, partial_work)
    assert deadline_outcome.units_done.tolist() == units
    assert deadline_outcome.is_in_time.tolist() == [True, partial_work, True]


def pause(seconds: np.ndarray) -> np.ndarray:
    """All clients are away from the 10th to the 110th second."""
    paused: np.ndarray = seconds + 100.0 * (seconds > 10)
    return paused


@for_all("close, units", [(9.0, 0), (10.0, 1), (20.0, 1), (113.9, 1), (114.0, 2), (118.0, 3), (126, 5)])
def test_units_that_fit_take_unavailability_into_account(close: float, units: int) -> None:
    """Travel and inference are 6 s, a unit 4: 10 s of work end at 10, 14 at 114, 26 at 126."""
    deadline_outcome = compute_outcome(timing(4.0), 5, close, True, wall_time=pause)
    assert deadline_outcome.units_done.tolist() == [units]
    assert deadline_outcome.train_s == (pause(np.array([6.0 + 4 * units]))[0] if units else close)
    outcome = compute_outcome(timing(4.0), 5, close, False, wall_time=pause)
    assert outcome.units_done.tolist() == [5 if units == 5 else 0]


def test_clients_can_leave_at_different_times() -> None:
    timings, absence_s = timing(1.0, 1.0, 1.0), np.array([0.0, 3.0, 50.0])
    deadline_outcome = compute_outcome(
        timings, np.array([5, 5, 5]), 12.0, True, wall_time=lambda seconds: seconds + absence_s
    )
    assert deadline_outcome.units_done.tolist() == [5, 3, 0]
    assert deadline_outcome.finish_s[:2].tolist() == [11, 12]
    assert deadline_outcome.train_s == 12


def test_the_phases_of_a_job() -> None:
    """Done, done in part, too late: the phases of the units done, and of the whole job of who is late."""
    deadline_outcome = compute_outcome(timing(2.0, 4.0, 50.0), 5, 20.0, partial_work=True, announced_s=20.0)
    assert [phase.tolist() for phase in deadline_outcome.phase_s.values()] == [[2] * 3, [1] * 3, [10, 12, 250], [3] * 3]
    assert deadline_outcome.units_asked.tolist() == [5, 5, 5]
    assert deadline_outcome.announced_s == 20.0


@pytest.mark.filterwarnings("error")
def test_unavailability_extends_a_phase() -> None:
    """A client is away from second 5 to 105 of its training; the second client never returns."""

    def to_wall_time(seconds: np.ndarray) -> np.ndarray:
        return np.where(seconds <= 5, seconds, seconds + np.array([100.0, np.inf]))

    deadline_outcome = compute_outcome(timing(2.0, 2.0), 5, 200.0, partial_work=False, wall_time=to_wall_time)
    assert [phase.tolist() for phase in deadline_outcome.phase_s.values()] == [[2, 2], [1, 1], [110, np.inf], [3, 0]]
    assert deadline_outcome.finish_s[0] == 116
