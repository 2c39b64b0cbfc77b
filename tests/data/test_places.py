import numpy as np
import pytest

from fedcohort.data import places
from fedcohort.data.places import rank_within_group, shuffled_positions


def test_rows_are_counted_within_their_groups() -> None:
    """Groups 2, 0, 2, 2, 0 as they stand: the first 2, the first 0, the second and third 2, the second 0."""
    groups = np.array([2, 0, 2, 2, 0])
    assert rank_within_group(groups).tolist() == [0, 0, 1, 2, 1]
    assert rank_within_group(groups, np.array([4, 3, 2, 1, 0])).tolist() == [2, 1, 1, 0, 0]
    assert rank_within_group(groups[:0]).tolist() == []


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_the_chunk_size_does_not_matter(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """A row's place is the number of rows of its group before it in the order, however many are counted at a time."""
    rng = np.random.default_rng(0)
    groups, order = rng.integers(0, 5, 60), rng.permutation(60)
    monkeypatch.setattr(places, "CHUNK", piece)
    expected = [sum(groups[other] == groups[row] for other in order[: order.tolist().index(row)]) for row in range(60)]
    assert rank_within_group(groups, order).tolist() == expected


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_a_random_order_equals_numpys_with_half_the_memory(n: int) -> None:
    """As many numbers are drawn, too: what is drawn next is the same."""
    ours, numpys = np.random.default_rng(3), np.random.default_rng(3)
    order = shuffled_positions(n, ours)
    np.testing.assert_array_equal(order, numpys.permutation(n))
    assert ours.random() == numpys.random()
    assert order.itemsize == 4
