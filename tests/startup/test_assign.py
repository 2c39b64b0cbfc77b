"""Which rows the server takes, and where those are that it leaves."""

import numpy as np
import pytest

from fedcohort.dataset.base import Raw
from fedcohort.startup.assign import find_dataset_positions
from fedcohort.startup.server_rows import MIN_CLIENT_ROWS, draw_server_rows


@pytest.mark.parametrize("held_out", [[], [0], [9], [0, 1, 5], [2, 3, 8, 9]])
def test_positions_after_the_held_out_rows(held_out: list[int]) -> None:
    kept_rows = [row for row in range(10) if row not in held_out]
    order = np.random.default_rng(0).permutation(len(kept_rows))
    assert find_dataset_positions(np.array(held_out, dtype=np.int64), order).tolist() == [
        kept_rows[place] for place in order
    ]


@pytest.mark.parametrize("has_owners", [False, True])
def test_the_server_gets_random_rows_of_each_class(has_owners: bool) -> None:
    """A row has the key (u_c + its place in its class) / n_c, three rows an owner inf; the smallest are taken."""
    labels, owner = np.random.default_rng(1).integers(0, 3, 60), np.arange(60) % 12
    x = np.zeros((60, 1), dtype=np.float32)
    raw = Raw("toy", x, labels, x, labels, 3, owner if has_owners else None)
    rng = np.random.default_rng(2)
    order, first = rng.permutation(60).tolist(), rng.random(3)
    position = {row: order.index(row) for row in range(60)}
    before = [
        sum(position[other_row] < position[row] for other_row in range(60) if labels[other_row] == labels[row])
        for row in range(60)
    ]
    key = [(first[c] + place) / (labels == c).sum() for c, place in zip(labels, before, strict=True)]
    kept_rows = set[int]()
    if has_owners:
        order = rng.permutation(60).tolist()
        for client_ids in range(12):
            kept_rows |= set([row for row in order if owner[row] == client_ids][:MIN_CLIENT_ROWS])
    expected = sorted(sorted(set(range(60)) - kept_rows, key=key.__getitem__)[:15])
    assert draw_server_rows(raw, 0.25, np.random.default_rng(2)).tolist() == expected


def test_rows_that_an_owner_needs_are_not_taken_from_others() -> None:
    """600 owners keep all of their three rows: of the one who can spare its 1000 no more than 5 % go, and not 14 %."""
    owner = np.r_[np.repeat(np.arange(600), MIN_CLIENT_ROWS), np.full(1000, 600)]
    labels = np.where(owner < 600, 0, 1)
    x = np.zeros((len(owner), 1), dtype=np.float32)
    for seed in range(5):
        rows = draw_server_rows(Raw("toy", x, labels, x, labels, 2, owner), 0.05, np.random.default_rng(seed))
        assert np.bincount(labels[rows], minlength=2).tolist() == [0, 52]
