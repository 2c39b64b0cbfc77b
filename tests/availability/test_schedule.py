"""Two intervals in 60 seconds, by hand; and many intervals, second by second."""

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.availability.schedule import ReadyClientTracker, ReadySchedule
from fedcohort.types import Ids, Values
from ready_schedules import make_schedule

TWO = make_schedule([[(10, 20), (40, 50)], [], [(0, 60)]], 60)


@for_all(
    "time_s, seconds, end",
    [
        (15, 8, 43),  # 5 seconds until 20, and 3 after 40
        (45, 8, 73),  # 5 until 50, and 3 after 60 + 10
        (0, 8, 18),
        (20, 1, 41),  # at its end an interval is over
        (15, 5, 20),  # work that is done when the client leaves needn't wait
        (10, 20, 50),
        (10, 20.5, 70.5),
        (0, 1e-10, 10),  # work below the clock's resolution waits for the client as well
        (12, 100, 312),  # five times 20 seconds, which end where they began
        (15 + 6000, 8, 43 + 6000),
    ],
)
def test_work_proceeds_only_inside_the_intervals(time_s: float, seconds: float, end: float) -> None:
    wall_s = TWO.completion_time(np.array([0]), time_s, np.array([float(seconds)]))
    assert time_s + wall_s == pytest.approx([end])


def test_always_available_clients_need_the_works_time_and_unavailable_ones_never_finish() -> None:
    clients, seconds = np.array([1, 2, 1, 2]), np.array([7.0, 700.0, 0.0, 0.0])
    assert TWO.completion_time(clients, 30, seconds) == pytest.approx([np.inf, 700, 0, 0])
    assert TWO.completion_time(clients[:0], 30, seconds[:0]).tolist() == []


@for_all("time_s, wait_s", [(0, 10), (10, 0), (19.5, 0), (20, 20), (40, 0), (50, 20), (59, 11), (609, 1), (610, 0)])
def test_seconds_until_a_client_is_ready(time_s: float, wait_s: float) -> None:
    assert TWO.seconds_until_ready(time_s).tolist() == [wait_s, np.inf, 0]


def test_uninterrupted_work_takes_exactly_its_seconds() -> None:
    seconds = np.random.default_rng(0).exponential(1.0, 500)
    schedule = make_schedule([[(0.1, 1e6)]] * 500, 1e6)
    np.testing.assert_array_equal(schedule.completion_time(np.arange(500), 0.3, seconds), seconds)


def test_every_client_has_its_own_period() -> None:
    schedule = ReadySchedule(
        np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([0, 1]), np.array([1, 2]), np.array([10.0, 7.0])
    )
    assert schedule.seconds_until_ready(8.0).tolist() == [2, 6]
    assert schedule.completion_time(np.arange(2), 0.0, np.array([2.5, 2.5])).tolist() == [20.5, 14.5]


def test_wall_times_agree_with_a_simulation_second_by_second() -> None:
    """Whole seconds, in which each of 30 clients is ready or not: what a stepwise clock does."""
    rng = np.random.default_rng(1)
    ready = rng.random((30, 40)) < 0.4
    ready[:, 0] |= ~ready.any(1)
    runs = [[(float(t), t + 1.0) for t in np.flatnonzero(row)] for row in ready]  # intervals that touch, too
    schedule = make_schedule(runs, 40)
    for time_s in range(0, 120, 7):
        available = np.roll(np.tile(ready, (1, 30)), -(time_s % 40), axis=1)
        np.testing.assert_array_equal(schedule.seconds_until_ready(time_s), available.argmax(1))
        for seconds in (1, 3, 17, 41):
            simulated = (available.cumsum(1) == seconds).argmax(1) + 1
            completion = schedule.completion_time(np.arange(30), time_s, np.full(30, float(seconds)))
            np.testing.assert_allclose(completion, simulated)


@for_all(
    "start, end, shares",
    [
        (15, 45, (10 / 30, 0, 1)),  # 5 seconds until 20, and 5 after 40
        (45, 75, (10 / 30, 0, 1)),  # 5 until 50, and 5 after 60 + 10
        (20, 40, (0, 0, 1)),
        (12, 18, (1, 0, 1)),
        (6015, 6315, (100 / 300, 0, 1)),  # five periods
    ],
)
def test_the_ready_share_of_a_time_slot_by_hand(start: float, end: float, shares: tuple[float, ...]) -> None:
    assert TWO.ready_share(np.arange(3), start, end) == pytest.approx(shares)


def test_the_tracker_finds_the_same_clients_as_the_schedule_and_checks_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 clients with intervals of some hours a day, one asked at each boundary, then an earlier second."""
    rng = np.random.default_rng(2)
    bounds = np.sort(rng.uniform(0, 86400, (300, 4)), axis=1)
    bounds[:5], bounds[5] = [0, 40000, 40000, 86400], [0, 0, 0, 0]  # intervals that touch, and a client without time
    schedule = make_schedule([[(a, b), (c, d)] for a, b, c, d in bounds], 86400)
    n_checked, next_change = list[int](), ReadySchedule.next_change

    def count(self: ReadySchedule, client_ids: Ids, now_s: float) -> tuple[np.ndarray, Values]:
        n_checked.append(len(client_ids))
        return next_change(self, client_ids, now_s)

    monkeypatch.setattr(ReadySchedule, "next_change", count)
    tracker = ReadyClientTracker(schedule)
    times = [
        *np.sort(np.concatenate([bounds.ravel(), 1e7 * 86400 + bounds[7]])),
        50000.0,
        *(50000 + 60 * np.arange(99)),
    ]
    ready_ids = [tracker.find_ready_clients_now(float(now_s)).tolist() for now_s in times]
    assert np.mean(n_checked[-99:]) < 10
    assert ready_ids == [np.flatnonzero(schedule.seconds_until_ready(float(now_s)) == 0).tolist() for now_s in times]
