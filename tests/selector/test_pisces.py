"""Pisces' utilities by hand, and its share of clients that never trained."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.pisces import Pisces
from fedcohort.types import Population
from optional_values import not_none
from selector_harness import make_context, make_outcome

POPULATION = Population(6, 10, 2, {})


def pisces(**options: Any) -> Pisces:
    return make_typed(Pisces, "selector", "pisces", **options)


def trained(selector: Pisces, client: int, staleness: list[int], count: float, squares: float) -> Any:
    state = selector.init(POPULATION)
    for steps in staleness:
        report = make_outcome(9, [client], loss_count=[count], loss_squares=[squares])
        late_report = replace(report, sent_round=np.array([9 - steps]))
        state = selector.observe(state, late_report)[1]
    return state


@pytest.mark.parametrize(
    ("count", "squares", "staleness", "expected"),
    [
        (100, 300.0, [0], 173.20508076),  # n = 100 with mean square 3
        (100, 300.0, [0, 4, 2, 6, 1, 3], 84.51542547),  # the last five have the mean 3.2
        (50, 450.0, [1], 106.06601718),  # 50 * 3 / 2^.5
    ],
)
def test_the_utilities_of_the_specification(
    count: float, squares: float, staleness: list[int], expected: float
) -> None:
    selector = pisces(eps=0, eps_min=0)
    state = trained(selector, 3, staleness, count, squares)
    selection, _ = selector.select(state, make_context(cohort=1, n_clients=6), {})
    assert selection.clients.tolist() == [3]
    assert not_none(selection.scores)[3] == pytest.approx(expected)


def test_clients_that_never_trained_get_their_share() -> None:
    """One of six has trained. With eps = .5, Binomial(2, .5) others are drawn, but at least one of the two places."""
    selector = pisces(eps=0.5)
    state = trained(selector, 3, [0], 10, 10.0)
    chosen = [selector.select(state, make_context(cohort=2, n_clients=6, seed=s), {})[0].clients for s in range(400)]
    assert np.mean([3 in clients for clients in chosen]) == pytest.approx(0.75, abs=0.06)
    assert all(len(clients) == 2 for clients in chosen)


def test_the_share_falls_to_its_least_value() -> None:
    selector, state = pisces(), pisces().init(POPULATION)
    shares = []
    for round in range(60):
        shares.append(state.eps)
        _, state = selector.select(state, make_context(round, n_clients=6), {})
    np.testing.assert_allclose(shares[:3], [0.9, 0.882, 0.86436])
    assert shares[-1] == 0.3
