import numpy as np
import pytest

from fedcohort.data.ragged import RaggedPositions
from fedcohort.label_noise.none import NoNoise
from fedcohort.rng import new_generator
from fedcohort.startup.assign import _flip_labels, _shuffle_client_rows
from optional_values import not_none


@pytest.fixture
def lists() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 50, n) for n in (3, 0, 7, 4, 1)]


def lists_of(ragged: RaggedPositions) -> list[np.ndarray]:
    return [ragged[k] for k in range(len(ragged))]


def test_a_ragged_array_equals_a_list_of_arrays(lists: list[np.ndarray]) -> None:
    ragged = RaggedPositions.from_client_rows(lists)
    assert len(ragged) == len(lists)
    assert [rows.tolist() for rows in lists_of(ragged)] == [rows.tolist() for rows in lists]
    assert ragged.sizes.tolist() == [len(rows) for rows in lists]
    assert ragged.owner.tolist() == [k for k, rows in enumerate(lists) for _ in rows]


def test_a_cut_parts_each_clients_first_positions_from_the_others(lists: list[np.ndarray]) -> None:
    sizes = np.array([1, 0, 7, 2, 0])
    first, head, tail = RaggedPositions.from_client_rows(lists).split_each_client(sizes)
    assert [rows.tolist() for rows in lists_of(head)] == [
        rows[:n].tolist() for rows, n in zip(lists, sizes, strict=True)
    ]
    assert [rows.tolist() for rows in lists_of(tail)] == [
        rows[n:].tolist() for rows, n in zip(lists, sizes, strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(lists)[first], head.rows)


def test_strata_are_counted_per_client(lists: list[np.ndarray]) -> None:
    kinds = [rows % 3 for rows in lists]
    expected = [np.bincount(rows, minlength=3) for rows in kinds]
    np.testing.assert_array_equal(
        RaggedPositions.from_client_rows(lists).count_by_stratum(np.concatenate(kinds), 3), expected
    )


def test_the_order_of_samples_depends_only_on_seed_and_client(lists: list[np.ndarray]) -> None:
    ragged = RaggedPositions.from_client_rows(lists)
    _shuffle_client_rows(ragged, 5)
    for k, rows in enumerate(lists):
        np.testing.assert_array_equal(ragged[k], new_generator(5, "client_split", client=k).permutation(rows))


def test_each_client_flips_labels_with_its_own_generator() -> None:
    ragged = RaggedPositions.from_sizes(np.arange(600), np.full(3, 200))
    true_y, rates = np.arange(600) % 7, np.array([0.5, 0.0, 0.9])
    noisy_labels = not_none(_flip_labels(NoNoise(), ragged, true_y, rates, 7, seed=2))
    draws = [new_generator(2, "label_flip", client=k) for k in range(3)]
    expected = [
        NoNoise().flip(true_y[rows], r, 7, g) for rows, r, g in zip(lists_of(ragged), rates, draws, strict=True)
    ]
    np.testing.assert_array_equal(noisy_labels, np.concatenate(expected))
    np.testing.assert_array_equal(noisy_labels[200:400], true_y[200:400])
