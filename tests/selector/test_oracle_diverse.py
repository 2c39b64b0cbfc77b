"""The diverse oracle: cohorts by hand."""

import numpy as np

from fedcohort.selector.backoff import NOBODY
from fedcohort.selector.oracle_diverse import OracleDiverse
from fedcohort.types import RoundContext
from known import known
from selector_harness import context, listed

# Two clients of class 0, two of class 1, one of class 2, one of all three
COUNTS = np.array([[6, 0, 0], [6, 0, 0], [0, 6, 0], [0, 6, 0], [0, 0, 6], [2, 2, 2]])


def made(seed: int, cohort: int, counts: np.ndarray = COUNTS) -> RoundContext:
    return context(cohort=cohort, n_clients=len(counts), signals={"label_counts": counts}, seed=seed)


def chosen(seed: int, cohort: int = 3) -> list[int]:
    return listed(OracleDiverse().select(NOBODY, made(seed, cohort), {})[0].clients)


def test_cohorts_have_all_classes_equally() -> None:
    """Beside a client of one class the most balanced second has all (4/9, 4/9 less), the third closes the rest.

    After 0 and 5 the counts are 8, 2, 2: a client of class 1 or 2 makes 8, 8, 2. Without client 5 in it a cohort of
    three has each class once.
    """
    seen = {tuple(chosen(seed)) for seed in range(60)}
    assert all(5 in cohort for cohort in seen)
    assert (0, 1, 5) not in seen
    assert len(seen) > 5
    four = {tuple(chosen(seed, 4)) for seed in range(60)}
    exact = [COUNTS[list(cohort)].sum(0).tolist() for cohort in four]
    assert [8, 8, 8] in exact


def test_the_first_is_anybody() -> None:
    assert {chosen(seed, 1)[0] for seed in range(60)} == set(range(6))


def test_who_has_nothing_is_last() -> None:
    counts = np.vstack([COUNTS[:3], np.zeros((1, 3), dtype=np.int64)])
    assert all(listed(OracleDiverse().select(NOBODY, made(s, 3, counts), {})[0].clients) == [0, 1, 2] for s in range(9))


def test_a_score_is_one_s_own_balance() -> None:
    """A single class is (1 - 1/3)^2 + 2/9 = 2/3 away from balance."""
    scores = known(OracleDiverse().select(NOBODY, made(0, 2), {})[0].scores)
    np.testing.assert_allclose(scores, [-2 / 3] * 5 + [0])
