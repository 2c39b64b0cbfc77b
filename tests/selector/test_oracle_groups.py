"""The oracle of groups: cohorts by hand."""

import numpy as np

from fedcohort.selector.base import Stateless
from fedcohort.selector.oracle_diverse import OracleDiverse
from fedcohort.selector.oracle_groups import OracleGroups
from fedcohort.types import RoundContext
from optional_values import not_none
from selector_harness import make_context, to_list

# Two classes in two colours: 0 red, 0 green, 1 red, 1 green. Both classes are even in all clients, the colours in none:
# two have class and colour together, two the other way round
GROUPS = np.array([[6, 0, 0, 6], [6, 0, 0, 6], [0, 6, 6, 0], [0, 6, 6, 0]])
CLASSES = GROUPS.reshape(4, 2, 2).sum(2)


def make_count_context(seed: int, cohort: int) -> RoundContext:
    return make_context(
        cohort=cohort, n_clients=4, signals={"group_counts": GROUPS, "label_counts": CLASSES}, seed=seed
    )


def test_a_cohort_has_no_correlation_of_class_and_colour() -> None:
    """Of two clients one is of each kind: four groups of six. The oracle of classes takes any two, all being even."""
    cohorts = {
        tuple(to_list(OracleGroups().select(Stateless(), make_count_context(seed, 2), {})[0].clients))
        for seed in range(60)
    }
    assert cohorts == {(0, 2), (0, 3), (1, 2), (1, 3)}
    blind = {
        tuple(to_list(OracleDiverse().select(Stateless(), make_count_context(seed, 2), {})[0].clients))
        for seed in range(60)
    }
    assert {(0, 1), (2, 3)} <= blind


def test_a_score_is_the_clients_group_balance() -> None:
    """Two of four groups by halves: 2 (1/2 - 1/4)^2 + 2 / 16 = 1/4 away from balance; over classes it would be 0."""
    scores = not_none(OracleGroups().select(Stateless(), make_count_context(0, 2), {})[0].scores)
    np.testing.assert_allclose(scores, [-1 / 4] * 4)
