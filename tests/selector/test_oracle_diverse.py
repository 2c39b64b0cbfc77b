"""The diverse oracle: cohorts by hand."""

import numpy as np

from fedcohort.selector.base import Stateless
from fedcohort.selector.oracle_diverse import OracleDiverse
from fedcohort.types import RoundContext
from optional_values import not_none
from selector_harness import make_context, to_list

# Two clients of class 0, two of class 1, one of class 2, one of all three
COUNTS = np.array([[6, 0, 0], [6, 0, 0], [0, 6, 0], [0, 6, 0], [0, 0, 6], [2, 2, 2]])


def make_count_context(seed: int, cohort: int, counts: np.ndarray = COUNTS) -> RoundContext:
    return make_context(cohort=cohort, n_clients=len(counts), signals={"label_counts": counts}, seed=seed)


def select_clients(seed: int, cohort: int = 3) -> list[int]:
    return to_list(OracleDiverse().select(Stateless(), make_count_context(seed, cohort), {})[0].clients)


def test_cohorts_are_balanced_over_classes() -> None:
    """After client 0, client 5 (8, 2, 2 samples) and one of another class (6, 6, 0) are both 1/6 away from balance.

    The third client then completes the balance. No cohort has two clients of the same class.
    """
    cohorts = {tuple(select_clients(seed)) for seed in range(80)}
    classes = {tuple(sorted(int(COUNTS[k].argmax()) for k in cohort if k != 5)) for cohort in cohorts}
    assert classes == {(0, 1, 2), (0, 1), (0, 2), (1, 2)}
    assert len(cohorts) > 5


def test_the_first_client_is_uniform() -> None:
    assert {select_clients(seed, 1)[0] for seed in range(60)} == set(range(6))


def test_clients_without_samples_come_last() -> None:
    counts = np.vstack([COUNTS[:3], np.zeros((1, 3), dtype=np.int64)])
    assert all(
        to_list(OracleDiverse().select(Stateless(), make_count_context(s, 3, counts), {})[0].clients) == [0, 1, 2]
        for s in range(9)
    )


def test_a_score_is_the_clients_class_balance() -> None:
    """A single class is (1 - 1/3)^2 + 2/9 = 2/3 away from balance."""
    scores = not_none(OracleDiverse().select(Stateless(), make_count_context(0, 2), {})[0].scores)
    np.testing.assert_allclose(scores, [-2 / 3] * 5 + [0])
