import numpy as np

from fedcohort.partition.base import SamplePool


def test_the_servers_samples_are_not_partitioned() -> None:
    positions = np.arange(6)
    sample_pool = SamplePool(positions % 3, 3, positions // 2, positions % 2, 2, server_positions=np.array([1, 4]))
    assert len(sample_pool) == 4
    assert sample_pool.labels.tolist() == [0, 2, 0, 2]
    assert sample_pool.owner is not None
    assert sample_pool.owner.tolist() == [0, 1, 1, 2]
    assert sample_pool.attribute is not None
    assert sample_pool.attribute.tolist() == [0, 0, 1, 1]


def test_unknown_fields_are_none_and_nothing_is_copied() -> None:
    labels = np.arange(6)
    sample_pool = SamplePool(labels, 6)
    assert (len(sample_pool), sample_pool.owner, sample_pool.attribute) == (6, None, None)
    assert np.shares_memory(sample_pool.labels, labels)
