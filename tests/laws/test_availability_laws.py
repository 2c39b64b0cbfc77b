"""Laws of every availability model: keyed by client id, monotone time, and absence never shortens work."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from config_options import list_options, load_options, make_component
from failure_hints import failure_hint
from fedcohort.availability.schedule import ReadySchedule
from fedcohort.deadline.base import compute_outcome
from fedcohort.device.base import Timing
from fedcohort.rng import Draws
from fedcohort.round.clock import VirtualClock
from global_rng_guard import forbid_global_rng
from run_harness import run_training, same_bits

K = 40
DAY = 86400.0
MOMENTS = [0.0, 1.0, 1799.5, 30_000.25, DAY - 1, DAY, 7.3 * DAY, 1e8 + 0.1]


@pytest.fixture(params=list_options("availability"))
def availability(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    choice = request.param
    return make_component(
        "availability", choice, **(write_table(tmp_path) if "path" in load_options("availability", choice) else {})
    )


def write_table(folder: Path) -> dict[str, Any]:
    """Write the table of a user, with three intervals a day for each of K clients."""
    bounds_s = np.sort(np.random.default_rng(0).uniform(0, DAY, (K, 6)), axis=1)
    columns = {
        "client": np.repeat(np.arange(K), 3),
        "start_s": bounds_s[:, ::2].ravel(),
        "end_s": bounds_s[:, 1::2].ravel(),
    }
    pq.write_table(pa.table(columns), folder / "ready.parquet")
    return {"path": str(folder / "ready.parquet"), "period_s": DAY}


def make_clock(availability: Any, seed: int = 0) -> VirtualClock:
    return VirtualClock(availability, Draws(seed, K), 0.0)


def make_schedule(availability: Any) -> ReadySchedule:
    schedule: ReadySchedule | None = availability.schedule(Draws(0, K))
    return schedule or pytest.skip("no clock decides")


@failure_hint("Draw from the Draws that the method receives.")
def test_availability_is_deterministic_without_global_generators(availability: Any) -> None:
    answers = []
    for _ in range(2):
        with forbid_global_rng():
            clock = make_clock(availability)
            answers.append([clock.find_ready_clients(Draws(0, K, t), now_s) for t, now_s in enumerate(MOMENTS)])
    for (client_ids, wait), (repeat, wait_again) in zip(*answers, strict=True):
        np.testing.assert_array_equal(client_ids, repeat)
        assert wait == wait_again


@failure_hint("Return a bool for each client, [n_clients].")
def test_ready_clients_are_a_flag_per_client_and_a_list_of_ids(availability: Any) -> None:
    ready = availability.ready(Draws(0, K, 3))
    assert (ready.dtype, ready.shape) == (np.dtype(bool), (K,))
    for t, now_s in enumerate(MOMENTS):
        client_ids, wait = make_clock(availability).find_ready_clients(Draws(0, K, t), now_s)
        assert np.array_equal(client_ids, np.unique(client_ids))
        assert client_ids.dtype == np.int64
        assert set(client_ids.tolist()) <= set(range(K))
        assert 0 <= wait < np.inf


@failure_hint("Keep no state between calls: compute from round and time.")
def test_availability_does_not_depend_on_earlier_queries(availability: Any) -> None:
    reused_clock, answers = (
        make_clock(availability),
        [make_clock(availability).find_ready_clients(Draws(0, K, t), now_s) for t, now_s in ROUNDS],
    )
    for (t, now_s), (client_ids, wait) in reversed(list(zip(ROUNDS, answers, strict=True))):
        repeat, wait_again = reused_clock.find_ready_clients(Draws(0, K, t), now_s)
        np.testing.assert_array_equal(client_ids, repeat)
        assert wait == wait_again


ROUNDS = list(enumerate(MOMENTS))


@failure_hint("Set `always` to whether all clients are ready in each round.")
def test_always_is_true_exactly_if_all_clients_are_ready_in_all_rounds(availability: Any) -> None:
    clock = make_clock(availability)
    assert (
        all(len(clock.find_ready_clients(Draws(0, K, t), now_s)[0]) == K for t, now_s in ROUNDS) == availability.always
    )


@failure_hint("Let the schedule's next time be the first at which a client is ready.")
def test_the_next_client_is_ready_at_the_given_time_and_none_before(availability: Any) -> None:
    schedule = make_schedule(availability)
    for now_s in MOMENTS:
        waits_s = schedule.seconds_until_ready(now_s)
        assert waits_s.shape == (K,)
        for k in np.flatnonzero((waits_s > 0) & np.isfinite(waits_s)):
            assert schedule.seconds_until_ready(now_s + waits_s[k] + 1e-6)[k] == 0
            for share in (0.1, 0.5, 0.99):
                assert schedule.seconds_until_ready(now_s + share * waits_s[k])[k] == pytest.approx(
                    (1 - share) * waits_s[k], abs=1e-5
                )


def test_wall_time_does_not_depend_on_the_other_clients(availability: Any) -> None:
    to_wall_time, seconds = make_clock(availability).wall_time(30_000.25), np.linspace(10, 1e5, K)
    wall_times = to_wall_time(np.arange(K), seconds)
    for ids in ([7], [3, 7, 20], [39, 0, 8]):
        np.testing.assert_array_equal(to_wall_time(np.array(ids), seconds[ids]), wall_times[ids])


def test_wall_time_is_at_least_the_work_and_grows_with_it(availability: Any) -> None:
    seconds = np.concatenate([[0.0, 1e-9], np.geomspace(1e-3, 20 * DAY, 200)])
    for now_s in MOMENTS:
        to_wall_time = make_clock(availability).wall_time(now_s)
        wall_s = np.stack([to_wall_time(np.arange(K), np.full(K, work_s)) for work_s in seconds])
        assert (wall_s >= seconds[:, None]).all()
        assert (np.diff(wall_s, axis=0) >= -1e-6).all()
        assert (wall_s[0] == 0).all()


def test_work_in_two_parts_ends_at_the_same_time(availability: Any) -> None:
    schedule, first, second = make_schedule(availability), 5_000.0, 40_000.0
    for now_s in MOMENTS:
        completion_s = schedule.completion_time(np.arange(K), now_s, np.full(K, first + second))
        for k in range(K):
            after_first = schedule.completion_time(np.array([k]), now_s, np.array([first]))
            after_second = schedule.completion_time(np.array([k]), now_s + float(after_first[0]), np.array([second]))
            assert after_first + after_second == pytest.approx(completion_s[k], rel=1e-9, abs=1e-3)


@pytest.mark.parametrize("partial_work", [False, True])
def test_a_faster_device_never_arrives_later_or_does_less(availability: Any, partial_work: bool) -> None:
    rng = np.random.default_rng(2)
    down, infer, unit, up = (rng.exponential(scale, K) for scale in (50.0, 100.0, 3_000.0, 50.0))
    for now_s in MOMENTS[:5]:
        to_wall_time = partial(make_clock(availability).wall_time(now_s), np.arange(K))
        outcomes = []
        for slower in (1.0, 1.1, 2.0, 7.0):
            timing = Timing(slower * down, slower * infer, slower * unit, slower * up)
            outcomes.append(compute_outcome(timing, 5, 30_000.0, partial_work, wall_time=to_wall_time))
        assert (np.diff([outcome.units_done for outcome in outcomes], axis=0) <= 0).all()
        arrivals = np.stack([np.where(outcome.units_done == 5, outcome.finish_s, np.inf) for outcome in outcomes])
        with np.errstate(invalid="ignore"):
            assert not (np.diff(arrivals, axis=0) < -1e-6).any()
        for outcome in outcomes:
            assert (outcome.finish_s[outcome.is_in_time] <= 30_000 + 1e-3).all()


@pytest.mark.parametrize("choice", list_options("availability"))
def test_a_resumed_run_equals_the_uninterrupted_one_and_its_clock_is_monotone(choice: str, tmp_path: Path) -> None:
    table = write_table(tmp_path) if "path" in load_options("availability", choice) else {}
    overrides = [f"availability={choice}", *(f"availability.{name}={value}" for name, value in table.items())]
    overrides += ["device.unit_s=20", "deadline=fixed", "deadline.window_s=20", "cohort=3"]
    uninterrupted = run_training(tmp_path / "whole", *overrides, "rounds=4")
    clock = [report.metrics["time/virtual_s"] for report in uninterrupted.reports]
    assert (np.diff(clock) > 0).all()
    run_training(tmp_path / "parts", *overrides, "rounds=2")
    parts = run_training(tmp_path / "parts", *overrides, "rounds=4", "resume=true")
    assert same_bits(uninterrupted, parts)
    assert [report.metrics["time/virtual_s"] for report in parts.reports] == clock[3:]
