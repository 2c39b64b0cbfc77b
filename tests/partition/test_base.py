import numpy as np

from fedcohort.partition.base import Stock


def test_the_servers_samples_are_not_partitioned() -> None:
    whole = np.arange(6)
    stock = Stock(whole % 3, 3, whole // 2, whole % 2, 2, server_positions=np.array([1, 4]))
    assert len(stock) == 4
    assert stock.labels.tolist() == [0, 2, 0, 2]
    assert stock.owner is not None
    assert stock.owner.tolist() == [0, 1, 1, 2]
    assert stock.attribute is not None
    assert stock.attribute.tolist() == [0, 0, 1, 1]


def test_unknown_fields_are_none_and_nothing_is_copied() -> None:
    labels = np.arange(6)
    stock = Stock(labels, 6)
    assert (len(stock), stock.owner, stock.attribute) == (6, None, None)
    assert np.shares_memory(stock.labels, labels)
