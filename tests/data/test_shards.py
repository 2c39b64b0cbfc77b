import numpy as np
import pytest

from fedcohort.data.ragged import RaggedPositions
from fedcohort.data.shards import (
    compute_class_quotas,
    owners_of_clients,
    round_to_given_sum,
    split_by_class,
    split_test_rows_by_owner,
)
from optional_values import not_none


def test_integer_quotas_are_met_exactly() -> None:
    counts = np.array([[80, 20], [20, 80], [100, 0]])
    np.testing.assert_array_equal(
        compute_class_quotas(counts, np.array([20, 10]), np.random.default_rng(0)), [[8, 2], [2, 8], [10, 0]]
    )


@pytest.mark.parametrize(
    ("clients", "classes", "ratio"), [(50, 10, 0.25), (200, 10, 0.02), (8, 2, 1.0), (100, 62, 0.1)]
)
def test_quotas_distribute_all_rows_by_classes_and_sizes(clients: int, classes: int, ratio: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts = np.rint(rng.dirichlet(np.full(classes, 0.3), clients) * rng.integers(3, 300, (clients, 1))).astype(int)
        pool = np.rint(ratio * counts.sum(0)).astype(int)
        quotas = compute_class_quotas(counts, pool, rng)
        np.testing.assert_array_equal(quotas.sum(0), pool)
        assert (quotas >= 0).all()
        assert (quotas[counts == 0] == 0).all()
        exact = pool * counts / np.maximum(counts.sum(0), 1)
        assert np.abs(quotas - exact).max() < 2
        assert np.abs(quotas.sum(1) - exact.sum(1)).max() < 1.5


def test_a_class_without_clients_stays_with_the_server() -> None:
    quotas = compute_class_quotas(np.array([[5, 0, 5], [5, 0, 0]]), np.array([2, 7, 0]), np.random.default_rng(0))
    np.testing.assert_array_equal(quotas, [[1, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("exact_quotas", "total", "expected"),
    [
        ([1.0, 2.0, 3.0], 6, [1, 2, 3]),
        ([0.4, 0.7, 0.9], 2, [0, 1, 1]),
        ([1.0, 1.0, 1.1], 2, [0, 1, 1]),  # more is wanted than there is
        ([-0.8, 0.2, 0.1], 2, [0, 1, 1]),
        ([0.1, 0.2], 7, [3, 4]),
    ],
)
def test_quotas_are_rounded_to_the_nearest_integers(exact_quotas: list[float], total: int, expected: list[int]) -> None:
    assert round_to_given_sum(np.array(exact_quotas), total).tolist() == expected


def test_equal_remainders_are_broken_at_random() -> None:
    counts = np.ones((4, 1), dtype=np.int64)
    wins = sum(compute_class_quotas(counts, np.array([1]), np.random.default_rng(seed))[:, 0] for seed in range(2000))
    assert np.abs(wins - 500).max() < 4.5 * np.sqrt(2000 * 3 / 16)


def test_dealt_rows_are_disjoint_and_of_the_right_classes() -> None:
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([0, 1], [20, 10]))
    rows = split_by_class(labels, np.array([[80, 20], [20, 80], [100, 0]]), rng)
    np.testing.assert_array_equal(np.sort(rows.rows), np.arange(30))
    item = [rows[k] for k in range(len(rows))]
    assert [np.bincount(labels[own_rows], minlength=2).tolist() for own_rows in item] == [[8, 2], [2, 8], [10, 0]]
    assert all((np.diff(own_rows) > 0).all() for own_rows in item)


def test_natural_clients_need_an_owner_for_each_client() -> None:
    owner = np.array([4, 4, 7, 7, 9])
    parts = [np.array([2, 3]), np.array([0])]
    assert not_none(owners_of_clients(owner, RaggedPositions.from_client_rows(parts))).tolist() == [7, 4]
    assert owners_of_clients(owner, RaggedPositions.from_client_rows([np.array([0, 2])])) is None
    assert owners_of_clients(owner, RaggedPositions.from_client_rows([np.array([0]), np.array([1])])) is None
    assert owners_of_clients(owner, RaggedPositions.from_client_rows([np.array([0]), parts[0][:0]])) is None


def test_rows_of_owners_are_listed() -> None:
    rows = split_test_rows_by_owner(np.array([7, 4, 7, 1]), np.array([7, 5, 4]))
    assert [rows[k].tolist() for k in range(len(rows))] == [[0, 2], [], [1]]
