"""Tables of samples: their sums, and their distance from the requested ones."""

from itertools import pairwise

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.partition.tables import (
    apportion_samples,
    enlarge_small_clients,
    equal_sizes,
    interleave_positions,
    round_table_to_sums,
    scale_table_to_sums,
)


def test_equal_sizes_are_filled_in_turns() -> None:
    assert [positions.tolist() for positions in interleave_positions(np.array([3, 3, 2]))] == [
        [0, 3, 6],
        [1, 4, 7],
        [2, 5],
    ]
    assert [positions.tolist() for positions in interleave_positions(np.array([4, 1]))] == [[0, 1, 3, 4], [2]]
    for total, n_clients in ((100, 7), (5, 5), (1000, 999)):
        positions_by_client = interleave_positions(equal_sizes(total, n_clients))
        assert all(
            (client_positions == np.arange(k, total, n_clients)).all()
            for k, client_positions in enumerate(positions_by_client)
        )


def test_largest_remainders_sum_to_the_size_within_one() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 7, 100, 619):
        P = rng.dirichlet(np.ones(6), 9).reshape(9, 3, 2)
        table = apportion_samples(np.full(9, size), P)
        assert (table.sum((1, 2)) == size).all()
        assert np.abs(table - size * P).max() < 1
    sizes = np.array([1, 7, 100, 619, 3, 4, 5, 6, 0])
    assert apportion_samples(sizes, P).sum((1, 2)).tolist() == sizes.tolist()
    ties = apportion_samples(np.full(4, 2), np.full((4, 2, 2), 0.25))
    assert (ties.sum(0) == 2).all(), "the odd samples go to other pairs for other clients"


def draw(seed: int, clients: int, kinds: int, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of weights, and margins of one total."""
    rng = np.random.default_rng(seed)
    log_weights = np.log(rng.standard_gamma(alpha + 1, (clients, kinds))) + np.log(rng.random((clients, kinds))) / alpha
    pools = rng.integers(1, 400, kinds) + clients
    sizes = 1 + rng.multinomial(pools.sum() - clients, rng.dirichlet(np.ones(clients)))
    return log_weights, sizes, pools


@for_all("alpha", [0.01, 0.1, 1.0, 100.0])
@for_all("clients, kinds", [(1, 4), (3, 1), (7, 10), (60, 10)])
def test_integer_tables_have_both_margins_exactly(clients: int, kinds: int, alpha: float) -> None:
    for seed in range(5):
        log_weights, sizes, pools = draw(seed, clients, kinds, alpha)
        target = scale_table_to_sums(log_weights, sizes, pools)
        np.testing.assert_allclose(target.sum(1), sizes)
        table = round_table_to_sums(target, sizes, pools)
        assert (table >= 0).all()
        assert table.sum(1).tolist() == sizes.tolist()
        assert table.sum(0).tolist() == pools.tolist()
        if alpha >= 1:
            assert np.abs(table - target).max() <= 3, "rounding alone"


def test_a_fit_keeps_the_ratios_of_the_weights() -> None:
    """The odds ratio of a table of two by two is that of the weights, 4 * 6 / (1 * 2), whatever the margins."""
    table = scale_table_to_sums(
        np.log([[4.0, 1.0], [2.0, 6.0]]), np.array([50_000, 150_000]), np.array([120_000, 80_000])
    )
    np.testing.assert_allclose(table.sum(0), [120_000, 80_000], atol=0.5)
    assert table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]) == pytest.approx(12, rel=1e-9)
    uniform_table = scale_table_to_sums(np.zeros((4, 5)), np.array([10, 20, 30, 40]), np.array([5, 15, 20, 25, 35]))
    np.testing.assert_allclose(uniform_table, np.outer([10, 20, 30, 40], [5, 15, 20, 25, 35]) / 100)


def test_very_different_weights_are_fitted() -> None:
    """Each client wants one kind alone, of which there are too few for both."""
    log_weights = np.array([[0.0, -1e300], [0.0, -1e300]])
    table = round_table_to_sums(
        scale_table_to_sums(log_weights, np.array([6, 4]), np.array([3, 7])), np.array([6, 4]), np.array([3, 7])
    )
    assert (table.sum(0).tolist(), table.sum(1).tolist()) == ([3, 7], [6, 4])


def test_rounded_off_samples_rotate_over_the_cells() -> None:
    """Of 300 clients with one sample each a third has each of three kinds, none of them in a run of more than five."""
    sizes = np.ones(300, dtype=np.int64)
    table = round_table_to_sums(np.full((300, 3), 1 / 3), sizes, np.array([100, 100, 100]))
    for kind in range(3):
        owners = np.flatnonzero(table[:, kind])
        assert max(b - a for a, b in pairwise(owners.tolist())) <= 5


def test_a_factor_that_all_weights_of_a_client_share_does_not_matter() -> None:
    """Weights far above or below the range of a float are scaled before they are used."""
    log_weights, sizes, pools = draw(0, 7, 4, 1.0)
    shifts = np.linspace(-2000, 2000, 7)[:, None]
    np.testing.assert_allclose(
        scale_table_to_sums(log_weights + shifts, sizes, pools), scale_table_to_sums(log_weights, sizes, pools)
    )


def test_a_debt_to_earlier_clients_is_repaid_from_kinds_that_a_client_has() -> None:
    """Client 0 wants half a sample of each of four kinds and gets the first two, so kinds 2 and 3 are owed half each.

    Client 1 wants [0, 0, .5, 1.5] and is owed [-.5, -.5, 1, 2]: one more than its size 2, so kind 2 loses one.
    """
    target = np.array([[0.5, 0.5, 0.5, 0.5], [0, 0, 0.5, 1.5], [0.5, 0.5, 0, 0]])
    table = round_table_to_sums(target, np.array([2, 2, 1]), np.array([1, 1, 1, 2]))
    assert table.tolist() == [[1, 1, 0, 0], [0, 0, 0, 2], [0, 0, 1, 0]]


def test_reaching_the_minimum_takes_samples_from_the_largest_clients() -> None:
    parts = [np.arange(10), np.array([], dtype=np.int64), np.arange(10, 16), np.arange(16, 18)]
    after = enlarge_small_clients(parts, 3)
    assert [len(part) for part in after] == [6, 3, 6, 3]
    np.testing.assert_array_equal(np.sort(np.concatenate(after)), np.arange(18))
    np.testing.assert_array_equal(after[2], parts[2])
