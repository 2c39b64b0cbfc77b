"""A step ends with the buffer's last arrival, and clients work until `concurrency` is reached."""

from pathlib import Path

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.deadline.buffered import Buffered
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.types import Population
from round_harness import run_without_files
from run_harness import run_training

FINISH = np.array([5.0, 1.0, 4.0, 2.0, 3.0])


def test_the_step_closes_with_the_last_arrival_of_the_buffer() -> None:
    deadline = make_typed(Buffered, "deadline", "buffered", buffer=3)
    state = deadline.init(Population(20, 10, 6, {}))
    assert [deadline.close(state, FINISH[:n], np.inf) for n in (5, 4, 2, 0)] == [3, 4, 5, 0]
    assert deadline.arrival_limit(state) == 3


def test_defaults_follow_the_cohort() -> None:
    deadline = make_typed(Buffered, "deadline", "buffered")
    assert (deadline.max_arrivals(10), deadline.cohort_size(10)) == (10, 20)
    assert [deadline.free_places(20, n) for n in (0, 13, 25)] == [20, 7, 0]
    assert deadline.init(Population(20, 10, 6, {})) == 6


def test_more_clients_at_work_than_there_are_name_the_option_to_set(tmp_path: Path) -> None:
    """The default concurrency is twice the cohort, 14 of 12 clients."""
    message = "selects 14 clients for cohort=7, which exceeds the 12 clients .*: set deadline.concurrency"
    with pytest.raises(IncompatibleConfig, match=message):
        run_training(tmp_path, "deadline=buffered", "cohort=7", "device=shifted_exponential")


def test_a_buffer_that_can_never_fill_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="buffer must be at most concurrency=4"):
        make_typed(Buffered, "deadline", "buffered", buffer=5, concurrency=4)
    with pytest.raises(OptionError, match="wait_for_stale must be null with max_staleness=3"):
        make_typed(Buffered, "deadline", "buffered", max_staleness=3, wait_for_stale=5)
    with pytest.raises(IncompatibleConfig, match=r"raise deadline\.concurrency, or lower deadline\.buffer"):
        run_training(tmp_path, "deadline=buffered", "deadline.concurrency=3")


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("selector=clustered", "the weights that selector=clustered advises are for the cohort of one round"),
        ("agg=rhfl", "needs all updates of a round to start from the same model"),
    ],
)
def test_methods_that_need_updates_of_one_model_are_rejected(choice: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=reason):
        run_training(tmp_path, choice, "deadline=buffered", "proxy=noise")


def test_free_places_stay_empty_until_the_step_if_asked() -> None:
    """With a buffer of 3 of 6 clients, each step refills 3 places: at once, or one by one as they become free."""
    options = ("deadline=buffered", "deadline.buffer=3", "deadline.concurrency=6", "device=shifted_exponential")
    step, arrival = (run_without_files(*options, f"deadline.refill={r}", "rounds=6") for r in ("step", "arrival"))
    assert [len(cohort) for cohort in step.cohorts] == [6, 3, 3, 3, 3, 3]
    assert [len(cohort) for cohort in arrival.cohorts] == [8, 3, 3, 3, 3, 3]
    assert [report.metrics["round/in_flight"] for report in step.reports[1:]] == [3] * 6
    assert [report.metrics["round/in_flight"] for report in arrival.reports[1:]] == [5] * 6
    assert arrival.last.metrics["time/virtual_s"] < step.last.metrics["time/virtual_s"]
