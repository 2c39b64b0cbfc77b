"""Clients of a large population stand in groups, and in the order of their classes."""

import numpy as np

from fedcohort.report.figure import partition, style


def test_groups_of_about_equal_size() -> None:
    assert style.group_starts(5).tolist() == [0, 1, 2, 3, 4]
    sizes = np.diff(np.append(style.group_starts(3550), 3550))
    assert (len(sizes), sizes.min(), sizes.max(), sizes.sum()) == (400, 8, 9, 3550)
    assert partition.group_means(np.array([[1.0], [3.0], [5.0]]), np.array([0, 2])).tolist() == [[2.0], [5.0]]


def test_clients_in_the_order_of_their_classes() -> None:
    counts = np.array([[0, 4], [3, 1], [4, 0], [1, 3]])
    assert partition.by_class(counts).tolist() == [2, 1, 0, 3]
