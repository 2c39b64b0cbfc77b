"""Every row is followed to where it ends up."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort.dataset.digits import Digits
from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.beta import Beta
from fedcohort.partition.dirichlet import Dirichlet
from fedcohort.partition.iid import Iid
from fedcohort.partition.natural import Natural
from federation_harness import (
    FLASH_PARTITION,
    N_CLASSES,
    N_TEST,
    N_TRAIN,
    client_sizes,
    make_federation,
    make_natural_raw,
    make_raw,
    row_ids,
)
from global_rng_guard import forbid_global_rng

PARTITIONS = [Iid(), FLASH_PARTITION, Dirichlet(0.3, 10), Natural()]


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: type(p).__name__)
def test_every_training_row_is_used_exactly_once(partition: Any) -> None:
    fed = make_federation(make_natural_raw(), partition, Beta(15, 100))
    assert sorted(row_ids(fed.train.x) + row_ids(fed.val.x) + row_ids(fed.server_val.x)) == list(range(N_TRAIN))
    assert row_ids(fed.server_test.x) == list(range(N_TEST))
    assert len(set(row_ids(fed.test.x))) == len(fed.test.y)
    assert fed.n_clients == 20


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: type(p).__name__)
def test_labels_belong_to_their_rows(partition: Any) -> None:
    fed = make_federation(make_natural_raw(), partition, Beta(15, 100))
    for shard in (fed.train, fed.val, fed.test):
        assert shard.true_y.tolist() == [i % N_CLASSES for i in row_ids(shard.x)]
    for server_rows in (fed.server_val, fed.server_test):
        assert server_rows.y.tolist() == [i % N_CLASSES for i in row_ids(server_rows.x)]
    counts = np.zeros((20, N_CLASSES), dtype=np.int64)
    for shard in (fed.train, fed.val):
        np.add.at(counts, (np.repeat(np.arange(20), client_sizes(shard)), shard.true_y.numpy()), 1)
    np.testing.assert_array_equal(fed.class_counts, counts)


def test_shards_have_the_right_types_and_offsets() -> None:
    fed = make_federation(noise=Beta(15, 100))
    for shard in (fed.train, fed.val, fed.test):
        assert shard.x.dtype == torch.float32
        assert shard.y.dtype == shard.true_y.dtype == torch.int64
        assert shard.offsets.dtype == np.int64
        assert shard.offsets.shape == (21,)
        assert (shard.offsets[0], shard.offsets[-1]) == (0, len(shard.y))
    np.testing.assert_array_equal(fed.n_train, client_sizes(fed.train))
    x, y = fed.train.client_samples(7)
    assert row_ids(x) == row_ids(fed.train.x)[fed.train.offsets[7] : fed.train.offsets[8]]
    assert len(y) == fed.n_train[7]
    assert x.untyped_storage().data_ptr() == fed.train.x.untyped_storage().data_ptr(), "a view, not a copy"


@pytest.mark.parametrize(
    ("clients", "client_val", "val"), [(20, 0.1, 10), (20, 0.0, 2), (20, 0.5, 48), (380, 0.1, 2), (633, 0.5, 2)]
)
def test_the_size_of_the_clients_validation_part(clients: int, client_val: float, val: int) -> None:
    """1900 rows: 95, 95, 5 and 3 a client. V_i has its share, 2 at least, and T_i has 1 at least."""
    fed = make_federation(partition=Iid(), clients=clients, client_val=client_val)
    assert abs(client_sizes(fed.val) - val).max() <= (1 if val > 2 else 0)
    assert fed.n_train.min() >= 1


def test_server_val_is_a_share_of_each_class() -> None:
    assert np.bincount(make_federation().server_val.y).tolist() == [10] * N_CLASSES
    skewed = make_raw(train_y=np.repeat([0, 1, 2], [1000, 900, 100]))
    assert np.bincount(make_federation(skewed, Iid(), server_val=0.1).server_val.y).tolist() == [100, 90, 10]


def test_server_val_never_takes_an_owners_last_rows() -> None:
    """Owner 0 has 3 rows, owner 1 has 4, owner 2 the rest; half of all is asked for."""
    owner = np.repeat([0, 1, 2], [3, 4, 193])
    data = make_natural_raw(200, owners=3, train_owner=owner)
    for seed in range(20):
        fed = make_federation(data, Natural(), seed=seed, clients=None, server_val=0.5)
        assert fed.class_counts.sum(1)[0] == 3
        assert fed.class_counts.sum(1)[1] in (3, 4)
        assert len(fed.server_val.y) == 100


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: type(p).__name__)
def test_equal_seeds_give_equal_bits_without_global_generators(partition: Any) -> None:
    def bits(seed: int) -> list[np.ndarray]:
        with forbid_global_rng():
            fed = make_federation(make_natural_raw(), partition, Beta(15, 100), seed)
        parts = [tensor.numpy() for s in (fed.train, fed.val, fed.test) for tensor in (s.x, s.y, s.true_y)]
        return [*parts, fed.server_val.x.numpy(), fed.class_counts, fed.noise_rate]

    first, repeat, other_seed = bits(0), bits(0), bits(1)
    for a, b in zip(first, repeat, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other_seed[0])


def test_label_noise_changes_only_labels() -> None:
    clean, noisy = make_federation(), make_federation(noise=Beta(15, 100))
    for name in ("train", "val", "test"):
        a, b = getattr(clean, name), getattr(noisy, name)
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.true_y, b.true_y)
        assert torch.equal(a.y, a.true_y)
    assert torch.equal(noisy.test.y, noisy.test.true_y)
    assert torch.equal(clean.server_val.y, noisy.server_val.y)
    assert not torch.equal(noisy.train.y, noisy.train.true_y)
    assert not torch.equal(noisy.val.y, noisy.val.true_y)


def test_each_client_has_its_own_noise_rate_in_both_parts() -> None:
    fed = make_federation(make_raw(60_000), noise=Beta(25, 100), client_val=0.5)
    for shard in (fed.train, fed.val):
        wrong = (shard.y != shard.true_y).numpy()
        achieved = np.add.reduceat(wrong, shard.offsets[:-1]) / client_sizes(shard)
        error = np.sqrt(fed.noise_rate * (1 - fed.noise_rate) / client_sizes(shard))
        assert (np.abs(achieved - fed.noise_rate) < 4.5 * error).all()
    assert fed.noise_rate.std() > 0.02


def test_test_shards_have_the_classes_and_the_sizes_of_their_clients() -> None:
    """Digits with FLASH's heterogeneity: 80 % of a skewed client's test rows are of its class too."""
    data = Digits().load(0)
    fed = make_federation(data, clients=20)
    assert len(fed.test.y) == len(data.test_y)
    share = fed.class_counts.max(1) / fed.class_counts.sum(1)
    for k in np.flatnonzero(share > 0.5):
        y = fed.test.client_samples(int(k))[1].numpy()
        top = fed.class_counts[k].argmax()
        assert abs((y == top).sum() - share[k] * len(y)) < 2
    assert client_sizes(fed.test).max() - client_sizes(fed.test).min() <= 3
    assert (share > 0.5).sum() == 6


def test_natural_clients_have_their_own_rows() -> None:
    data = make_natural_raw()
    fed = make_federation(data, Natural(), clients=None)
    for k in range(20):
        for shard in (fed.train, fed.val):
            assert {i // N_CLASSES % 20 for i in row_ids(shard.client_samples(k)[0])} == {k}
        assert row_ids(fed.test.client_samples(k)[0]) == [i for i in range(N_TEST) if i // N_CLASSES % 20 == k]


def test_a_run_can_use_a_subset_of_the_natural_clients() -> None:
    fed, all_clients = (make_federation(make_natural_raw(), Natural(), clients=clients) for clients in (5, None))
    assert fed.n_clients == 5
    for k in range(5):
        assert torch.equal(fed.train.client_samples(k)[0], all_clients.train.client_samples(k)[0])
        assert torch.equal(fed.test.client_samples(k)[0], all_clients.test.client_samples(k)[0])
    assert len(fed.server_test.y) == N_TEST


@pytest.mark.parametrize(("partition", "owners"), [(Iid(), np.arange(N_TEST) // N_CLASSES % 20), (Natural(), None)])
def test_without_natural_clients_rows_are_partitioned(partition: Any, owners: Any) -> None:
    fed = make_federation(make_natural_raw(test_owner=owners), partition)
    assert sorted(row_ids(fed.test.x)) == list(range(N_TEST))
    assert {i // N_CLASSES % 20 for i in row_ids(fed.test.client_samples(0)[0])} != {0}


def test_a_pooled_test_part_belongs_to_the_server() -> None:
    for data in (
        make_natural_raw(pooled_test=True),
        make_natural_raw(pooled_test=True, test_owner=np.full(N_TEST, 99)),
    ):
        fed = make_federation(data, Natural())
        assert (len(fed.test.y), len(fed.server_test.y), client_sizes(fed.test).tolist()) == (0, N_TEST, [0] * 20)


def test_classes_without_clients_are_named() -> None:
    assert make_federation().notices() == []
    few = make_raw(class_names=[f"c{c}" for c in range(N_CLASSES)], train_y=np.arange(N_TRAIN) % 8)
    line = (
        "dataset=made: no client has samples of 2 of the 10 classes (c8, c9), so that no model can learn these classes"
    )
    assert make_federation(few, Iid()).notices() == [line]
    assert "(8, 9)" in make_federation(replace(few, class_names=()), Iid()).notices()[0]


def test_some_natural_clients_may_have_no_test_rows_but_not_all() -> None:
    fed = make_federation(make_natural_raw(test_owner=np.arange(N_TEST) % 10), Natural(), clients=None)
    assert (client_sizes(fed.test) == [50] * 10 + [0] * 10).all()
    with pytest.raises(DataError, match=r"dataset=made: no client of the training data has test rows"):
        make_federation(make_natural_raw(test_owner=np.full(N_TEST, 77)), Natural(), clients=None)


@pytest.mark.parametrize(
    ("message", "error", "arguments"),
    [
        (r"clients=634 needs 1902 .* dataset=made has 1900 .* clients<=633$", OptionError, {"clients": 634}),
        (r"dataset=made: .*min_samples=96 .*<=95$", OptionError, {"partition": Dirichlet(0.3, 96)}),
        (
            r"dataset=made: partition=natural needs a client column",
            DataError,
            {"partition": Natural(), "clients": None},
        ),
        (r"dataset=made: clients=null needs .* clients must be .* got null", OptionError, {"clients": None}),
        (
            r"dataset=made: fewer than 3 training samples at 1 client \(client 0 has 2\)",
            DataError,
            {
                "data": make_natural_raw(train_owner=np.minimum(np.arange(N_TRAIN) // 2, 1)),
                "partition": Natural(),
                "clients": None,
            },
        ),
        (
            r"takes samples of clients with more than 3 training samples, but no client has more",
            DataError,
            {"data": make_natural_raw(60, train_owner=np.arange(60) % 20), "partition": Natural(), "clients": None},
        ),
    ],
)
def test_impossible_splits_are_rejected_by_name(
    message: str, error: type[Exception], arguments: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        make_federation(**arguments)


def test_to_moves_every_tensor() -> None:
    fed = make_federation().to("meta")
    for shard in (fed.train, fed.val, fed.test):
        assert {shard.x.device.type, shard.y.device.type, shard.true_y.device.type} == {"meta"}
    for server_rows in (fed.server_val, fed.server_test):
        assert {server_rows.x.device.type, server_rows.y.device.type} == {"meta"}
    np.testing.assert_array_equal(fed.n_train, make_federation().n_train)


def test_groups_are_counted_with_the_clients_noisy_labels() -> None:
    """The attribute of row i is the parity of i // 10, whatever its class."""
    data = make_raw(
        train_attribute=np.arange(N_TRAIN) // N_CLASSES % 2, test_attribute=np.arange(N_TEST) // N_CLASSES % 2
    )
    assert (make_raw().n_attributes, data.n_attributes) == (0, 2)
    federation = make_federation(data, noise=Beta(15, 100))
    assert federation.group_counts is not None
    assert federation.group_counts.shape == (20, 2 * N_CLASSES)
    np.testing.assert_array_equal(federation.group_counts.reshape(20, N_CLASSES, 2).sum(2), federation.label_counts)
    for k in range(20):
        x, y = federation.train.client_samples(k)
        for c in range(N_CLASSES):
            attributes = [i // N_CLASSES % 2 for i, label in zip(row_ids(x), y.tolist(), strict=True) if label == c]
            assert federation.group_counts[k, 2 * c : 2 * c + 2].tolist() == [attributes.count(0), attributes.count(1)]
    assert federation.server_test_attribute is not None
    assert data.test_attribute is not None
    assert np.shares_memory(federation.server_test_attribute, data.test_attribute)
    np.testing.assert_array_equal(federation.to("cpu").group_counts, federation.group_counts)


def test_without_attributes_no_groups_are_counted() -> None:
    assert make_federation().group_counts is None
    assert make_federation().server_test_attribute is None
