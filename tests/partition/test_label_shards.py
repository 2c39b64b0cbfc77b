"""Label shards: equal sizes, few classes a client, dealt at random."""

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.label_shards import LabelShards

LABELS = np.random.default_rng(1).permutation(np.arange(6000) % 10)


def split(shards: int, clients: int, seed: int = 0) -> list[np.ndarray]:
    return LabelShards(shards).split(SamplePool(LABELS, 10), clients, np.random.default_rng(seed))


def classes(parts: list[np.ndarray]) -> list[int]:
    return [len(np.unique(LABELS[part])) for part in parts]


def test_two_shards_per_client_for_a_hundred_clients() -> None:
    """200 shards of 30 samples divide each class of 600 by 20: a shard has one class, a client one or two."""
    parts = split(2, 100)
    assert {len(part) for part in parts} == {60}
    assert set(classes(parts)) == {1, 2}


def test_a_client_rarely_has_twice_the_same_class() -> None:
    """Of the 199 other shards 19 have the class of the first: 9.5 % of the clients, 0.02 is three deviations."""
    share_of_single = np.mean([np.array(classes(split(2, 100, seed))) == 1 for seed in range(20)])
    assert share_of_single == pytest.approx(19 / 199, abs=0.02)


def test_ten_shards_are_less_skewed_than_one() -> None:
    assert np.mean(classes(split(10, 20))) > np.mean(classes(split(2, 20))) > np.mean(classes(split(1, 20)))


def test_too_many_shards_are_rejected_with_a_feasible_number() -> None:
    with pytest.raises(
        OptionError,
        match=r"partition.shards=70 is more than the 60 samples .*: partition.shards<=60$",
    ):
        split(70, 100)
    with pytest.raises(OptionError, match=r"partition.shards=1000000000000 is more than the 60 samples"):
        split(10**12, 100)  # whose sizes alone would take 800 TB
