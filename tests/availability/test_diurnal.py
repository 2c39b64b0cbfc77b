"""Each client is ready for one interval a day, from a time of day that is drawn for it."""

import numpy as np
import pytest

from fedcohort.availability.diurnal import Diurnal
from fedcohort.rng import Draws

HOURS = 3600.0 * np.arange(0.5, 24)


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_a_share_of_the_clients_is_ready_at_every_hour(share: float) -> None:
    ready = np.stack(
        [Diurnal(share, 86400.0, 0.0).schedule(Draws(3, 5000)).seconds_until_ready(hour) == 0 for hour in HOURS]
    )
    assert ready.mean(1) == pytest.approx(np.full(24, share), abs=5 * np.sqrt(0.25 / 5000))
    assert np.abs(24 * ready.mean(0) - 24 * share).max() <= 1 + 1e-9  # hours a client is there, seen once an hour


def test_a_client_is_ready_at_the_same_hours_every_day() -> None:
    schedule = Diurnal(0.25, 100.0, 0.0).schedule(Draws(0, 50))
    phase = 100 * Draws(0, 50).uniform("diurnal")
    waits_s = schedule.seconds_until_ready(700.0)
    expected = phase - np.where(phase > 75, 100, 0)  # who comes after 75 stays over midnight
    np.testing.assert_allclose(waits_s, np.where(expected <= 0, 0, expected))
    for k in range(50):
        now_s = 700 + phase[k] + 1e-6
        wall_s = schedule.completion_time(np.array([k]), now_s, np.array([24.0]))
        assert wall_s == pytest.approx([24.0])
        assert schedule.completion_time(np.array([k]), now_s, np.array([30.0])) == pytest.approx([105.0], abs=1e-4)


def test_clients_ready_at_a_smaller_share_are_ready_at_a_larger_one() -> None:
    ready_at_smaller, ready_at_larger = (
        Diurnal(share, 100.0, 0.0).schedule(Draws(0, 300)).seconds_until_ready(33.0) == 0 for share in (0.3, 0.6)
    )
    assert (ready_at_larger | ~ready_at_smaller).all()
    assert 0 < ready_at_smaller.sum() < ready_at_larger.sum() < 300


def test_clients_of_a_class_are_ready_in_the_same_part_of_the_day() -> None:
    """Of four classes and a day of 100 s, class c becomes ready in [25 c, 25 c + 25), and is ready for 10 s."""
    main_classes = np.arange(400) % 4
    draws = Draws(0, 400, main_classes=main_classes, n_classes=4)
    waits_s = Diurnal(0.1, 100.0, class_share=1.0).schedule(draws).seconds_until_ready(35.0 - 1e-9)
    starts = 25 * (main_classes + draws.uniform("diurnal"))
    np.testing.assert_allclose(waits_s, np.where(starts <= 25, starts + 65, np.maximum(starts - 35, 0)), atol=1e-6)


def test_with_share_1_all_clients_are_always_ready() -> None:
    schedule = Diurnal(1.0, 100.0, 0.0).schedule(Draws(0, 200))
    for now_s in (0.0, 33.3, 1e6 + 7.0):
        assert (schedule.seconds_until_ready(now_s) == 0).all()
        assert schedule.completion_time(np.arange(200), now_s, np.full(200, 777.7)) == pytest.approx(777.7)
