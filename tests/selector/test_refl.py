"""REFL's slot, order and target by hand, and what its forecasts are and cost in a run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.refl import Refl, State
from fedcohort.types import Ids, Population, ProbeResult
from round_harness import run_without_files
from selector_harness import make_context, make_outcome

FORECASTS = np.array([0.9, 0.2, 0.5, 0.2, 1.0, 0.2])


def refl(**options: Any) -> Refl:
    return make_typed(Refl, "selector", "refl", **options)


def select_clients(selector: Refl, forecasts: np.ndarray, cohort: int, seed: int = 0) -> Ids:
    ctx = make_context(1, cohort, len(forecasts), seed=seed)
    answers = {"availability_forecast": ProbeResult(ctx.available, forecasts)}
    return selector.select(State(60.0), ctx, answers)[0].clients


def test_the_clients_that_will_be_available_least_come_first() -> None:
    """Clients 1, 3, 5 tie at .2; two of the three are drawn, each with probability 2/3. Then come 2, 0 and 4."""
    assert select_clients(refl(), FORECASTS, 3).tolist() == [1, 3, 5]
    assert select_clients(refl(), FORECASTS, 4).tolist() == [1, 2, 3, 5]
    assert select_clients(refl(), FORECASTS, 5).tolist() == [0, 1, 2, 3, 5]
    share = np.mean([np.isin([1, 3, 5], select_clients(refl(), FORECASTS, 2, seed)) for seed in range(600)], axis=0)
    np.testing.assert_allclose(share, 2 / 3, atol=0.06)


def test_equal_forecasts_give_uniform_draws() -> None:
    share = np.mean([np.isin(range(6), select_clients(refl(), np.ones(6), 2, seed)) for seed in range(900)], axis=0)
    np.testing.assert_allclose(share, 1 / 3, atol=0.05)


def test_wrong_forecasts_are_used_as_their_complement() -> None:
    """Each of p = (0, 1) is wrong with probability 1/4. Client 0 wins if both are right, and half of the ties.

    Both right 9/16, one wrong 6/16 with equal values, both wrong 1/16: 9/16 + 3/16 = 3/4.
    """
    assert select_clients(refl(accuracy=0.0), FORECASTS, 1).tolist() == [4]
    share = np.mean([select_clients(refl(accuracy=0.75), np.array([0.0, 1.0]), 1, seed)[0] == 0 for seed in range(900)])
    assert share == pytest.approx(3 / 4, abs=0.05)


def test_the_predicted_slot_of_the_specifications_example() -> None:
    """Durations 100, 60, 80 with alpha = .25: 100, .75 * 60 + .25 * 100 = 70, .75 * 80 + .25 * 70 = 77.5."""
    selector, slots = refl(), []
    state = selector.init(Population(6, 10, 2, {}))
    assert list(selector.plan(state, make_context())) == []
    for round_s in (100.0, 60.0, 80.0):
        state = selector.observe(state, replace(make_outcome(0, [1]), round_s=round_s))[1]
        slots.append(state.slot_s)
    np.testing.assert_allclose(slots, [100, 70, 77.5])
    (query,) = selector.plan(state, make_context())
    assert query.options == {"start_s": 77.5, "end_s": 155.0}


@pytest.mark.parametrize(("n_before_deadline", "expected"), [(0, 10), (3, 7), (10, 1), (14, 1)])
def test_the_target_falls_by_the_late_updates_that_are_expected(n_before_deadline: int, expected: int) -> None:
    ctx = make_context(1, 10, 40)
    ctx = replace(
        ctx, in_flight=np.arange(20), in_flight_s=np.repeat([59.0, 61.0], [n_before_deadline, 20 - n_before_deadline])
    )
    assert len(refl(adaptive=True).select(State(60.0), ctx, {})[0].clients) == expected
    assert len(refl().select(State(60.0), ctx, {})[0].clients) == 10


DIURNAL = ("availability=diurnal", "availability.day_s=6000", "availability.share=0.5", "device=shifted_exponential")


def test_a_run_selects_the_least_available_and_pays_for_forecasts_only() -> None:
    """Each forecast is charged 4 bytes, and no model is sent for it; it takes no time. There is none in round 1."""
    run = run_without_files("selector=refl", *DIURNAL, "clients=40", "cohort=3", "rounds=6")
    n_models, n_forecasts = 0, 0
    for report in run.reports[1:]:
        forecasts = report.clients.get("signal_availability_forecast", np.full(40, np.nan))
        queried_ids = np.flatnonzero(report.clients["queried"])
        assert np.flatnonzero(~np.isnan(forecasts)).tolist() == queried_ids.tolist()
        if len(queried_ids):
            assert queried_ids.tolist() == np.flatnonzero(report.clients["available"]).tolist()
            unselected_ids = np.setdiff1d(queried_ids, report.cohort)
            assert forecasts[report.cohort].max() <= forecasts[unselected_ids].min() + 1e-9
        n_models, n_forecasts = n_models + len(report.cohort), n_forecasts + len(queried_ids)
        assert report.metrics["comm/probe_bytes"] == 4 * n_forecasts
        assert report.metrics["comm/down_bytes"] == 2600 * n_models
    assert n_forecasts > 0
