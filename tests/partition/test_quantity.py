"""Quantity skew over other partitions: the sizes' laws, and that what the other partition promises still holds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from fedcohort.errors import OptionError
from fedcohort.partition.attribute import Attribute
from fedcohort.partition.base import SamplePool
from fedcohort.partition.dirichlet import Dirichlet
from fedcohort.partition.dominant_class import DominantClass
from fedcohort.partition.iid import Iid
from fedcohort.partition.label_shards import LabelShards
from fedcohort.partition.natural import Natural
from fedcohort.partition.quantity import Quantity
from fedcohort.partition.tables import make_proportional_sizes
from run_harness import run_training

N, K, C = 6000, 20, 10
LABELS = np.random.default_rng(1).permutation(np.arange(N) % C)
BIRDS = Attribute([], 0.0, 0.2, 0.6, "sc", "data")
BASES = [Iid(), DominantClass(0.3, 0.6), LabelShards(2), Dirichlet(0.3, 25), BIRDS]
NAMES = ["iid", "dominant_class", "label_shards", "dirichlet", "attribute"]


def split(partition: Quantity, seed: int = 0, clients: int = K, labels: np.ndarray = LABELS) -> list[np.ndarray]:
    attribute = (np.arange(len(labels)) // 3) % 2
    return list(partition.split(SamplePool(labels, C, None, attribute, 2), clients, np.random.default_rng(seed)))


def sizes(parts: list[np.ndarray]) -> list[int]:
    return [len(part) for part in parts]


@for_all("base", BASES)
@for_all("law, spread", [("lognormal", 0.7), ("power_law", 0.5), ("lognormal", 0.0)])
def test_samples_are_used_once_and_sizes_are_those_drawn(base: Any, law: str, spread: float) -> None:
    quantity = Quantity(base, law, spread, 25)
    parts = split(quantity)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(N))
    drawn = make_proportional_sizes(N, quantity.draw_size_weights(K, np.random.default_rng(0)), 25)
    assert sizes(parts) == drawn.tolist() == sizes(split(Quantity(Iid(), law, spread, 25)))
    assert min(sizes(parts)) >= 25
    assert sizes(split(quantity, seed=1)) != sizes(parts) or spread == 0


def test_the_power_law_is_zipfs_law() -> None:
    """Four clients, spread 1: 1, 1/2, 1/3, 1/4 of 25/12 in all, so that 2,500 samples above 10 each make 1,200, ..."""
    parts = split(Quantity(Iid(), "power_law", 1.0, 10), clients=4, labels=LABELS[:2540])
    assert np.abs(np.sort(sizes(parts)) - np.array([310, 410, 610, 1210])).max() <= 1
    largest = [int(np.argmax(sizes(split(Quantity(Iid(), "power_law", 1.0, 10), seed, 4)))) for seed in range(400)]
    assert np.abs(np.bincount(largest, minlength=4) - 100).max() < 4.5 * np.sqrt(400 * 3 / 16)


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_the_lognormals_logarithms_have_the_spread(spread: float) -> None:
    """The sample's standard deviation has the relative error sqrt(1 / 2n)."""
    logs = np.log(Quantity(Iid(), "lognormal", spread, 1).draw_size_weights(5000, np.random.default_rng(2)))
    assert logs.std() == pytest.approx(spread, rel=4.5 * np.sqrt(1 / 10_000))
    assert logs.max() == 0


@for_all("law", ["lognormal", "power_law"])
@for_all("spread", [0.0, 20.0])
@for_all("clients, least", [(1, 6000), (600, 10), (6000, 1), (7, 3)])
def test_extreme_spreads_give_valid_sizes(law: str, spread: float, clients: int, least: int) -> None:
    """At spread 0 sizes differ by at most one; at a large spread nearly all clients have the smallest size."""
    client_sizes = sizes(split(Quantity(Iid(), law, spread, least), clients=clients))
    assert (sum(client_sizes), min(client_sizes) >= least) == (N, True)
    if spread == 0:
        assert max(client_sizes) - min(client_sizes) <= 1


def test_sizes_are_rounded_and_sum_exactly() -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        weights, least = rng.random(17) ** 5, int(rng.integers(0, 9))
        client_sizes = make_proportional_sizes(1000, weights, least)
        assert client_sizes.sum() == 1000
        assert np.abs(client_sizes - least - (1000 - 17 * least) * weights / weights.sum()).max() <= 1


def test_a_dominant_class_has_its_share_of_every_size_and_the_others_are_uniform() -> None:
    quantity = Quantity(DominantClass(0.3, 0.6), "lognormal", 0.7, 25)
    parts = split(quantity)
    counts = np.stack([np.bincount(LABELS[part], minlength=C) for part in parts])
    top = np.array([round(0.6 * n) for n in counts.sum(1)])
    skewed = counts.max(1) == top
    assert skewed.sum() == 6
    other_counts = counts[~skewed].sum(0)
    expected = counts[~skewed].sum(1, keepdims=True) * other_counts / other_counts.sum()
    assert np.abs(counts[~skewed] - expected).max() <= 1.5


def test_shards_are_pieces_of_each_clients_size() -> None:
    """A client's two pieces are of one class each, or of two where they lie across a border."""
    parts = split(Quantity(LabelShards(2), "power_law", 0.5, 25))
    borders = C - 1
    assert sum(len(np.unique(LABELS[part])) for part in parts) <= 2 * K + borders


SHARDS = r"^partition.base.shards=9 is more than the 5 samples of the smallest .* feasible: partition.base.shards<=5$"
CLASS = (
    r"^partition.base.fraction=1.0 partition.base.share=1.0: .* clients of about 300 .* feasible: partition.base.frac"
)


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        (Quantity(Iid(), "lognormal", 1.0, 301), r"^partition.min_samples=301 .* 20 clients; .*min_samples<=300$"),
        (Quantity(LabelShards(9), "power_law", 9.0, 5), SHARDS),
        (Quantity(DominantClass(1.0, 1.0), "power_law", 2.0, 5), CLASS),
        (
            Quantity(Dirichlet(0.3, 301), "power_law", 0.0, 5),
            r"^partition.base.min_samples=301 .*min_samples<=300$",
        ),
    ],
)
def test_impossible_options_are_rejected_with_their_typed_names(quantity: Quantity, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        split(quantity)


def test_a_partition_with_its_own_sizes_is_rejected() -> None:
    tables = Attribute([[[1, 1]]], 0.1, 0.1, 0.9, "sc", "even")
    bases: list[Any] = [tables, Natural(), Quantity(Iid(), "lognormal", 1.0, 10), 3]
    for base in bases:
        with pytest.raises(OptionError, match=r"^base must be a partition that supports drawn sizes, as in .*, got"):
            Quantity(base, "lognormal", 1.0, 10)


def test_partitions_that_choose_sizes_reject_given_sizes() -> None:
    with pytest.raises(
        OptionError,
        match=r"Natural can't use the 2 sizes that .* draws: choose another partition@partition\.base",
    ):
        Natural().deal(SamplePool(LABELS, C), np.array([1, N - 1]), np.random.default_rng(0))


def counts_of(parts: list[np.ndarray]) -> np.ndarray:
    return np.stack([np.bincount(LABELS[part], minlength=C) for part in parts])


@pytest.mark.parametrize(("alpha", "low", "high"), [(0.1, 0.6, 0.95), (0.5, 0.35, 0.65), (1000.0, 0.1, 0.16)])
def test_the_skew_of_dirichlet_is_unchanged(alpha: float, low: float, high: float) -> None:
    """The mean over clients of their largest class's share, which is near for both: alpha means the same."""
    base, skews = Dirichlet(alpha, 25), []
    for quantity in (True, False):
        shares = []
        for seed in range(10):
            pool = SamplePool(LABELS, C)
            parts = (Quantity(base, "lognormal", 0.7, 25) if quantity else base).split(
                pool, K, np.random.default_rng(seed)
            )
            counts = counts_of(list(parts))
            shares.append((counts.max(1) / counts.sum(1)).mean())
        skews.append(float(np.mean(shares)))
    assert low < skews[0] < high
    assert skews[0] == pytest.approx(skews[1], abs=0.08)


def test_if_the_base_leaves_samples_over_sizes_stay_proportional() -> None:
    quantity = Quantity(Attribute([], 0.0, 0.0, 0.9, "sc", "even"), "lognormal", 0.5, 5)
    assert not quantity.takes_all
    assert Quantity(BIRDS, "lognormal", 0.5, 5).takes_all
    parts, iid_parts = split(quantity), split(Quantity(Iid(), "lognormal", 0.5, 5))
    shares = np.array(sizes(parts)) / sum(sizes(parts))
    assert sum(sizes(parts)) < N
    assert np.abs(shares - np.array(sizes(iid_parts)) / N).max() < 2 / sum(sizes(parts))
    with pytest.raises(OptionError, match=r"^partition.min_samples=\d+ is more than the \d+ samples of the"):
        split(Quantity(quantity.base, "lognormal", 0.5, min(sizes(parts)) + 1 + 30))


def test_the_partition_does_not_depend_on_the_selector(tmp_path: Path) -> None:
    overrides = (
        "partition=quantity",
        "partition@partition.base=dominant_class",
        "partition.base.share=0.4",
        "rounds=1",
    )
    runs = [run_training(tmp_path / choice, *overrides, f"selector={choice}") for choice in ("random", "powd")]
    first, second = (run.info.class_counts for run in runs)
    np.testing.assert_array_equal(first, second)
    assert np.ptp(first.sum(1)) > 100
    assert runs[0].info.choices["partition.base"] == "dominant_class"
