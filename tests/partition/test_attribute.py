"""Tables of (class, attribute) counts: those of the rule by hand, those that are given, and what can't be dealt."""

from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from config_options import load_options
from fedcohort.data import skew
from fedcohort.errors import DataError, OptionError
from fedcohort.partition.attribute import Attribute
from fedcohort.partition.attribute_tables import dominant_probabilities
from fedcohort.partition.base import SamplePool
from fedcohort.partition.tables import apportion_samples

EVEN = np.array([[600, 600], [600, 600]])
BIRDS = np.array([[3498, 184], [56, 1057]])


def rule(**changes: Any) -> Attribute:
    options = {name: value for name, value in load_options("partition", "attribute").items() if name != "_target_"}
    return Attribute(**{**options, **changes})


def sample_pool(pools: np.ndarray, seed: int = 0) -> SamplePool:
    pair = np.random.default_rng(seed).permutation(np.repeat(np.arange(pools.size), pools.ravel()))
    return SamplePool(pair // pools.shape[1], len(pools), None, pair % pools.shape[1], pools.shape[1])


def deal_samples(partition: Attribute, pools: np.ndarray, clients: int | None, seed: int = 0) -> np.ndarray:
    """The samples that each client got, [K, C, A]."""
    pool = sample_pool(pools)
    parts = partition.split(pool, clients, np.random.default_rng(seed))
    assert pool.attribute is not None
    pair = pool.labels * pools.shape[1] + pool.attribute
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    return np.stack([np.bincount(pair[part], minlength=pools.size).reshape(pools.shape) for part in parts])


def test_the_three_kinds_of_clients_by_hand() -> None:
    """Two classes and attributes, a share of .9, 12 clients of 200: .9 / 2 of 200 are 90, .1 / 2 are 10.

    Half of a kind has the other class, attribute or pairing, so that all 2,400 samples are dealt.
    """
    counts = deal_samples(rule(ci=0.5, ai=0.5), EVEN, 12)
    kinds = {
        ((90, 90), (10, 10)): 3,
        ((10, 10), (90, 90)): 3,
        ((90, 10), (90, 10)): 3,
        ((10, 90), (10, 90)): 3,
    }
    tables = [tuple(tuple(row) for row in client_table.tolist()) for client_table in counts]
    assert {kind: tables.count(kind) for kind in kinds} == kinds
    dealt_tables = deal_samples(rule(ci=0, ai=0, left="ci"), EVEN, 12)
    tables = [tuple(tuple(row) for row in client_table.tolist()) for client_table in dealt_tables]
    assert {kind: tables.count(kind) for kind in set(tables)} == {((90, 10), (10, 90)): 6, ((10, 90), (90, 10)): 6}


@for_all("remaining_skew", ["ci", "ai", "sc"])
@for_all("classes, attributes", [(2, 2), (4, 2), (6, 3)])
def test_the_pooled_data_have_only_the_remaining_skew(remaining_skew: str, classes: int, attributes: int) -> None:
    """Of 36 clients 12 are of each kind, and 12 is a multiple of 2, 3, 4 and 6: all kinds are equally frequent."""
    counts = deal_samples(rule(ci=1 / 3, ai=1 / 3, left=remaining_skew), np.full((classes, attributes), 3000), 36)
    metrics = skew.skew_metrics(counts)
    for name in skew.SKEW_METRIC_NAMES:
        assert (metrics[f"global_{name}"] > 0.02) == (name == remaining_skew), metrics
    assert np.bincount(skew.skew_triplets(counts).argmax(1)).tolist() == [12, 12, 12]


def test_sizes_are_not_raised_by_rounding() -> None:
    """Nine clients have 2 (.45 + .05) + 5 * .45 = 3.25 of the rarest pair, and 37 / 3.25 = 11.4; 12 would fit."""
    pools = np.array([[37, 613], [487, 593]])
    counts = deal_samples(rule(ci=0.17, ai=0.17, share=0.9, left="sc"), pools, 9)
    assert (counts.sum((1, 2)) == 11).all()
    P = np.array([[0.45, 0.05], [0.05, 0.45]])  # each kind's, by its skew
    ci, ai = ([[0.45, 0.45], [0.05, 0.05]], [[0.05, 0.05], [0.45, 0.45]]), ([[0.45, 0.05]] * 2, [[0.05, 0.45]] * 2)
    assert (apportion_samples(np.full(9, 12), np.array([*ci, *ai, *[P] * 5])).sum(0) <= pools).all()


def test_all_clients_have_the_largest_possible_equal_size() -> None:
    """The rarest pair allows 50 / .5 of them, as half of the 24 clients have .9 / 2 of each pair, and half .1 / 2."""
    counts = deal_samples(rule(ci=0.5, ai=0.5), np.array([[1200, 1200], [1200, 600]]), 24)
    assert (counts.sum((1, 2)) == 100).all()
    assert (counts.sum(0) == 600).all()


def test_a_share_of_one_half_is_no_skew() -> None:
    counts = deal_samples(rule(share=0.5), EVEN, 6)
    assert np.ptp(counts) == 0


def test_a_peak_leaves_the_remaining_share_to_the_other_cells() -> None:
    assert dominant_probabilities(1, 0, 0.9).tolist() == [1.0]
    np.testing.assert_allclose(dominant_probabilities(4, 2, 0.7), [0.1, 0.1, 0.7, 0.1])


def count_pairs(partition: Attribute, pools: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The samples that each client got out of the requested sizes, [K, C, A]."""
    pool = sample_pool(pools)
    parts = partition.deal(pool, np.array(sizes), np.random.default_rng(0))
    assert pool.attribute is not None
    pair = pool.labels * pools.shape[1] + pool.attribute
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    return np.stack([np.bincount(pair[part], minlength=pools.size).reshape(pools.shape) for part in parts])


def test_given_sizes_keep_their_proportions_and_the_kinds() -> None:
    """Spurious correlation only, .9: two pairs get .45 of each client; their 600 of 2,400 samples allow 1,333."""
    sizes = [1200, 600, 300, 300]
    counts = count_pairs(rule(ci=0, ai=0), EVEN, sizes)
    client_sizes = counts.sum((1, 2))
    assert 1330 <= client_sizes.sum() <= 1333
    assert np.abs(client_sizes - np.array(sizes) * 1333 / 2400).max() <= 1
    assert np.abs(counts / client_sizes[:, None, None] - np.array([[0.45, 0.05], [0.05, 0.45]])).max() < 0.01
    assert (counts.sum(0) <= 600).all()


def test_given_sizes_are_exact_with_the_datas_margins() -> None:
    sizes = [1500, 900, 700, 600, 500, 300, 200, 95]
    counts = count_pairs(rule(ci=0.25, ai=0, margins="data"), BIRDS, sizes)
    assert counts.sum((1, 2)).tolist() == sizes
    assert (counts.sum(0) == BIRDS).all()
    shares = counts.sum(2)[:, 0] / sizes
    skewed = np.abs(shares - BIRDS[0].sum() / BIRDS.sum()) > 0.1
    assert skewed.sum() == 2, "a client is of one class whatever its size"
    other_counts = counts[~skewed]
    expected = other_counts.sum((1, 2))[:, None, None] * other_counts.sum(0) / other_counts.sum()
    assert np.abs(other_counts - expected).max() <= 2


def test_sizes_can_be_given_if_all_clients_are_skewed() -> None:
    counts = count_pairs(rule(ci=1, ai=0, share=0.5, margins="data"), EVEN, [1000, 800, 600])
    assert counts.sum((1, 2)).tolist() == [1000, 800, 600]


def test_with_the_datas_margins_all_samples_are_used() -> None:
    """Four clients of 100: one of class 0 alone, in its own 80 : 20; the others share 200, 80, 0 and 20 by thirds."""
    pools = np.array([[280, 70], [0, 50]])
    counts = deal_samples(rule(ci=0.25, ai=0, share=1.0, margins="data"), pools, 4)
    skewed_tables = [client_table.tolist() for client_table in counts if not client_table[1].any()]
    assert skewed_tables == [[[80, 20], [0, 0]]]
    assert (counts.sum(0) == pools).all()
    assert counts.sum((1, 2)).tolist() == [100] * 4
    other_counts = np.stack([client_table for client_table in counts if client_table[1].any()])
    assert np.abs(other_counts - np.array([[200, 50], [0, 50]]) / 3).max() <= 1


def test_a_dominant_class_keeps_the_proportions_of_the_others() -> None:
    """Class 0 has 100 of 400 and gets .6 of 40, 24; 1 and 2 have 1 : 2 and share 16 so."""
    counts = deal_samples(rule(ci=0.1, ai=0, share=0.6, margins="data"), np.array([[50, 50], [100, 0], [200, 0]]), 10)
    assert [[12, 12], [5, 0], [11, 0]] in counts.tolist()


def test_user_tables_are_followed_exactly() -> None:
    tables = [[[9, 1], [5, 5]], [[0, 3], [2, 0]], [[1, 1], [1, 1]]]
    for clients in (None, 3):
        assert deal_samples(rule(counts=tables), EVEN, clients).tolist() == tables


def test_the_kinds_of_clients_are_drawn() -> None:
    first, repeat, other_seed = (deal_samples(rule(), EVEN, 12, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, repeat)
    assert first.tolist() != other_seed.tolist()
    assert sorted(first.tolist()) == sorted(other_seed.tolist())


@for_all(
    "partition, pools, clients, message",
    [
        (rule(counts=[[[1, 1], [1, 1]]] * 3), EVEN, 4, r"clients=4, but partition.counts has tables for 3 clients"),
        (
            rule(counts=[[[1, 1]]]),
            EVEN,
            1,
            "must have tables of 2 classes and 2 attributes, but has tables of 1 classes and",
        ),
        (rule(counts=[[[700, 1], [1, 1]]]), EVEN, 1, "700 training samples of class 0 with attribute 0, .* are 600"),
        (
            rule(),
            np.array([[900, 900], [900, 9]]),
            24,
            r"9 samples of class 1 with attribute 1; .*clients<=7,",
        ),
        (
            rule(),
            np.array([[9, 9], [9, 0]]),
            2,
            r"0 samples .* 1; feasible: partition.margins=data with .*<=9",
        ),
        (rule(ci=0, ai=1, share=1.0, margins="data"), BIRDS, 30, "class 0 with attribute 1, but there are 184 .*share"),
        (rule(), np.array([[0, 0], [9, 9], [9, 0]]), 2, r"there are 0 samples of class 2 with attribute 1"),
        (rule(), EVEN, 2401, "clients=2401 exceeds the 2400 training samples"),
        (rule(), EVEN, None, "clients=null .*partition=attribute has none"),
    ],
)
def test_an_impossible_table_is_rejected_with_a_possible_one(
    partition: Attribute, pools: np.ndarray, clients: int | None, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        deal_samples(partition, pools, clients)


def test_data_without_attributes_are_rejected() -> None:
    with pytest.raises(
        DataError, match="partition=attribute splits samples by class and attribute, but these data have"
    ):
        rule().split(SamplePool(np.zeros(9, dtype=np.int64), 2), 2, np.random.default_rng(0))


@pytest.mark.parametrize("counts", [[[[1, 2]], [[1, 2], [3, 4]]], [[1, 2]], [[[0.5, 1]]], [[["a", 1]]], [[[-1, 1]]], 3])
def test_invalid_tables_are_rejected(counts: Any) -> None:
    with pytest.raises(OptionError, match=r"counts must be a list of tables, one per client, .* got"):
        rule(counts=counts)


def test_shares_of_kinds_above_one_in_total_are_rejected() -> None:
    with pytest.raises(OptionError, match=r"ai must be at most 1 - ci = 0.4, got 0.5"):
        rule(ci=0.6, ai=0.5)


def test_a_size_that_rounds_above_the_pool_is_reduced() -> None:
    """Two clients of 10 need 4.5 + .5 = 5 of each pair; rounding makes that 6 of the pair that has 5, so they get 9."""
    pools = np.array([[22, 5], [19, 9]])
    counts = deal_samples(rule(ci=0, ai=0, left="ci"), pools, 2)
    assert counts.sum((1, 2)).tolist() == [9, 9]
    assert (counts.sum(0) <= pools).all()


def test_a_client_of_shift_d_pairs_class_y_with_attribute_y_plus_d() -> None:
    """Two clients, three classes and attributes: shifts 0 and 1, so the peaks are 0, 1, 2 and 1, 2, 0."""
    counts = deal_samples(rule(ci=0, ai=0, left="ci"), np.full((3, 3), 300), 2)
    assert sorted(client.argmax(1).tolist() for client in counts) == [[0, 1, 2], [1, 2, 0]]


def test_a_pair_with_too_few_samples_is_named_by_class_and_attribute() -> None:
    tables = [[[1, 1, 1], [1, 1, 9]]]
    with pytest.raises(OptionError, match=r"9 training samples of class 1 with attribute 2, but there are 5 "):
        deal_samples(rule(counts=tables), np.full((2, 3), 5), 1)
