import numpy as np

from fedcohort.data.group_ranks import rank_within_group


def test_rows_are_counted_within_their_groups() -> None:
    """Groups 2, 0, 2, 2, 0 as they stand: the first 2, the first 0, the second and third 2, the second 0."""
    groups = np.array([2, 0, 2, 2, 0])
    assert rank_within_group(groups).tolist() == [0, 0, 1, 2, 1]
    assert rank_within_group(groups, np.array([4, 3, 2, 1, 0])).tolist() == [2, 1, 1, 0, 0]
    assert rank_within_group(groups[:0]).tolist() == []


def test_ranks_follow_the_order() -> None:
    """A row's rank is the number of rows of its group before it in the order."""
    rng = np.random.default_rng(0)
    groups, order = rng.integers(0, 5, 60), rng.permutation(60)
    expected = [
        sum(groups[variant] == groups[row] for variant in order[: order.tolist().index(row)]) for row in range(60)
    ]
    assert rank_within_group(groups, order).tolist() == expected


def test_rows_of_70000_groups_are_ranked() -> None:
    """Rows of 70,000 groups, each with two rows at random places: ranks are 0 and 1 in the order of the rows."""
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(70_000), 2))
    first_rows = np.unique(groups, return_index=True)[1]
    expected = np.ones(len(groups), dtype=np.int64)
    expected[first_rows] = 0
    assert np.array_equal(rank_within_group(groups), expected)
