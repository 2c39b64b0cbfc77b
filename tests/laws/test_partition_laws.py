"""Every partition is disjoint, sorted, deterministic and independent of inputs, and rejects impossible requests."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.errors import FedcohortError
from fedcohort.partition.base import SamplePool
from fedcohort.types import Ids
from global_rng_guard import forbid_global_rng

N, C, A, K = 1200, 10, 2, 12


QUANTITY_PREFIX = "quantity over "
SIZED = [
    QUANTITY_PREFIX + choice
    for choice in list_options("partition")
    if getattr(make_component("partition", choice), "takes_sizes", False)
]


@pytest.fixture(params=[*list_options("partition"), *SIZED])
def partition(request: pytest.FixtureRequest) -> Any:
    """Yield every partition, and partition=quantity over each base that accepts sizes."""
    if not request.param.startswith(QUANTITY_PREFIX):
        return make_component("partition", request.param)
    return replace(
        make_component("partition", "quantity"),
        base=make_component("partition", request.param.removeprefix(QUANTITY_PREFIX)),
        spread=0.1,
    )


def labels(seed: int = 0) -> Ids:
    return np.random.default_rng(seed).permutation(np.arange(N) % C)


def sample_pool(y: Ids) -> SamplePool:
    """Return samples with owners, and with attributes that are balanced within each class."""
    return SamplePool(y, C, np.random.default_rng(9).permutation(np.arange(N) % K), (y + np.arange(N) // C) % A, A)


def split(partition: Any, seed: int = 0, clients: int | None = K) -> list[Ids]:
    return partition.split(sample_pool(labels()), clients, np.random.default_rng(seed))  # type: ignore[no-any-return]


@failure_hint("Give each sample to exactly one client, and sort each client's positions.")
def test_partitions_are_disjoint_exhaustive_and_sorted(partition: Any) -> None:
    for seed in range(5):
        parts = split(partition, seed)
        assert len(parts) == K
        assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() and len(part) for part in parts)
        distributed_ids = np.sort(np.concatenate(parts))
        assert (np.diff(distributed_ids) > 0).all()
        assert len(distributed_ids) == N or not partition.takes_all


@failure_hint("Draw from the generator that `split` receives.")
def test_partitions_are_deterministic_without_global_generators(partition: Any) -> None:
    with forbid_global_rng():
        first = split(partition)
    with forbid_global_rng():
        repeat = split(partition)
    for a, b in zip(first, repeat, strict=True):
        np.testing.assert_array_equal(a, b)


@failure_hint("Copy labels, owners and attributes before you change them.")
def test_the_arguments_are_not_modified(partition: Any) -> None:
    arguments = sample_pool(labels())
    for array in (arguments.labels, arguments.owner, arguments.attribute):
        assert array is not None
        array.flags.writeable = False
    partition.split(arguments, K, np.random.default_rng(0))


@failure_hint("Do not divide by the size of a class: it may be empty.")
def test_a_class_without_samples_is_accepted(partition: Any) -> None:
    y = labels() % 7  # classes 7, 8, 9 are empty, 0, 1, 2 have twice as many
    parts = partition.split(sample_pool(y), K, np.random.default_rng(0))
    assert sum(len(part) for part in parts) == N or not partition.takes_all


@failure_hint("Raise OptionError that says how many clients are feasible.")
def test_too_many_clients_are_rejected_with_a_feasible_number(partition: Any) -> None:
    with pytest.raises(FedcohortError, match=r"feasible: .*\d"):
        split(partition, clients=N + 1)
