"""Orders of samples: what a pass is cut into, where the last one ends, and passes that never do."""

import itertools

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.rng import new_generator
from fedcohort.training.passes import (
    count_batches,
    count_sample_uses,
    cut_into_batches,
    draw_sample_passes,
    yield_batches,
)


def test_the_last_batch_has_the_remaining_samples_or_is_merged() -> None:
    assert cut_into_batches(7, 3, merge_last_batch=True) == [(0, 3), (3, 7)]
    assert cut_into_batches(7, 3, merge_last_batch=False) == [(0, 3), (3, 6), (6, 7)]
    assert cut_into_batches(8, 3, merge_last_batch=True) == [(0, 3), (3, 6), (6, 8)]
    assert cut_into_batches(1, 3, merge_last_batch=True) == [(0, 1)]


@pytest.mark.parametrize(("steps", "lengths"), [(0, []), (2, [2]), (3, [3]), (7, [3, 3, 1])])
def test_passes_end_after_the_requested_steps(steps: int, lengths: list[int]) -> None:
    passes = draw_sample_passes(new_generator(0, "x"), 5, cut_into_batches(5, 2, False), steps)
    assert [len(batches) for _, batches in passes] == lengths
    assert all(sorted(order) == list(range(5)) for order, _ in passes)
    assert len({tuple(order) for order, _ in passes}) == len(passes)


@for_all("merge_last_batch", [False, True])
@for_all("batch", [1, 2, 3, 10, None])
def test_counted_batches_and_samples_equal_the_drawn_ones(batch: int | None, merge_last_batch: bool) -> None:
    n = np.arange(1, 14)
    batches_by_client = [cut_into_batches(size, batch or size, merge_last_batch) for size in n.tolist()]
    assert count_batches(n, batch, merge_last_batch).tolist() == [len(batches) for batches in batches_by_client]
    for steps in range(12):
        passes_by_client = [
            draw_sample_passes(new_generator(0, "x"), size, batches, steps)
            for size, batches in zip(n.tolist(), batches_by_client, strict=True)
        ]
        n_samples = [
            sum(stop - start for _, batches in passes for start, stop in batches) for passes in passes_by_client
        ]
        assert count_sample_uses(n, batch, merge_last_batch, steps).tolist() == n_samples
    assert count_sample_uses(np.array([0, 4]), batch, merge_last_batch, np.array([3, 0])).tolist() == [0, 0]


def test_endless_mini_batches_repeat_all_samples_per_pass() -> None:
    first, second = (list(itertools.islice(yield_batches(new_generator(0, "x"), 5, 2), n)) for n in (3, 9))
    assert [len(rows) for rows in second] == [2, 2, 1] * 3
    assert sorted(position for rows in first for position in rows) == list(range(5))
    assert all((a == b).all() for a, b in zip(first, second, strict=False))
    assert not list(yield_batches(new_generator(0, "x"), 0, 2))
