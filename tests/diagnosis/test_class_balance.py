"""Effective classes by hand, and balanced cohorts."""

import numpy as np

from fedcohort.diagnosis.class_balance import balance_cohort, count_cohort_classes, effective_classes


def test_effective_classes_by_hand() -> None:
    """Shares 1; .5, .5; .75, .25 give 1, 2 and 1 / (9/16 + 1/16) = 1.6; a client without samples has none."""
    counts = np.array([[4.0, 0], [3, 3], [3, 1], [0, 0]])
    np.testing.assert_allclose(effective_classes(counts), [1.0, 2.0, 1.6, 0.0])


def test_random_cohorts_of_one_class_clients_hold_fewer_classes_than_their_pool() -> None:
    """Ten clients with one class each: every cohort of two holds two classes, and the pool ten."""
    counts = 5.0 * np.eye(10)
    n_cohort_classes, n_pool_classes = count_cohort_classes(counts, np.ones(10, bool), 2, np.random.default_rng(0))
    np.testing.assert_allclose([n_cohort_classes, n_pool_classes], [2, 10])
    n_cohort_classes, n_pool_classes = count_cohort_classes(counts, np.arange(10) < 1, 2, np.random.default_rng(0))
    np.testing.assert_allclose([n_cohort_classes, n_pool_classes], [1, 1])


def test_a_cohort_starts_with_the_least_used_client_and_completes_its_classes() -> None:
    """Client 0 is the least used, of class 0; 3 completes it as 1 does not; 2 is as good as 3, but used more often."""
    counts = np.array([[8.0, 0], [8, 0], [0, 8], [0, 8]])
    n_selections = np.array([0, 1, 5, 1])
    cohorts = [
        balance_cohort(counts, n_selections, np.arange(4), 2, np.random.default_rng(s)).tolist() for s in range(20)
    ]
    assert all(cohort == [0, 3] for cohort in cohorts)


def test_only_candidates_are_chosen_and_ties_are_drawn() -> None:
    counts, n_selections = np.ones((6, 2)), np.zeros(6, np.int64)
    candidates = np.array([1, 3, 4])
    drawn = {
        tuple(balance_cohort(counts, n_selections, candidates, 2, np.random.default_rng(s)).tolist()) for s in range(40)
    }
    assert drawn == {(1, 3), (1, 4), (3, 4)}
    assert balance_cohort(counts, n_selections, candidates, 9, np.random.default_rng(0)).tolist() == [1, 3, 4]
    assert not len(balance_cohort(counts, n_selections, candidates[:0], 2, np.random.default_rng(0)))


def test_every_client_gets_its_turn() -> None:
    """Ten one-class clients in cohorts of two: after five rounds all were used once."""
    counts, n_selections = np.eye(10), np.zeros(10, np.int64)
    for round in range(5):
        n_selections[balance_cohort(counts, n_selections, np.arange(10), 2, np.random.default_rng(round))] += 1
    assert n_selections.tolist() == [1] * 10
