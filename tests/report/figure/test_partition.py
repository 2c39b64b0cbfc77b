"""Clients of a large population stand in groups, and in the order of their classes."""

from pathlib import Path

import numpy as np

from fedcohort.report.figure import partition, style
from record import example_run


def test_groups_of_about_equal_size() -> None:
    assert style.find_group_starts(5).tolist() == [0, 1, 2, 3, 4]
    sizes = np.diff(np.append(style.find_group_starts(3550), 3550))
    assert (len(sizes), sizes.min(), sizes.max(), sizes.sum()) == (400, 8, 9, 3550)
    assert partition.average_groups(np.array([[1.0], [3.0], [5.0]]), np.array([0, 2])).tolist() == [[2.0], [5.0]]


def test_clients_in_the_order_of_their_classes() -> None:
    counts = np.array([[0, 4], [3, 1], [4, 0], [1, 3]])
    assert partition.sort_by_class(counts).tolist() == [2, 1, 0, 3]


def test_names_of_classes_are_short_and_absent_without_room(tmp_path: Path) -> None:
    names = {"0": "walking", "1": "walking down a long staircase", "2": "standing"}
    info = example_run.make_run_info(tmp_path, classes=3, labels=names)
    assert partition.shorten_class_names(info) == ["walking", "walking down a lo…", "standing"]
    labels = [tick.get_text() for tick in partition.draw_partition(info).axes[0].get_xticklabels()]
    assert labels == ["walking", "walking down a lo…", "standing"]
    assert partition.shorten_class_names(example_run.make_run_info(tmp_path, classes=3)) == []
    thirteen_labels = {str(c): f"class {c}" for c in range(13)}
    assert partition.shorten_class_names(example_run.make_run_info(tmp_path, classes=13, labels=thirteen_labels)) == []
