"""What partitions and noise may return."""

import numpy as np
import pytest

from fedcohort.data.ragged import RaggedPositions
from fedcohort.errors import ComponentError
from fedcohort.partition.base import SamplePool
from fedcohort.round import data_contracts
from fedcohort.types import Ids

STOCK = SamplePool(np.zeros(6, np.int64), 2)


def ids(*rows: int) -> Ids:
    return np.array(rows, np.int64)


def test_a_partition_may_leave_samples_out() -> None:
    split = data_contracts.check_split(None, [ids(0, 2), ids(1)], STOCK, 2)
    assert split.rows.tolist() == [0, 2, 1]
    assert data_contracts.check_split(None, split, STOCK, None) is split


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([ids(0, 1), ids(1)], "samples of all clients must be .* distinct"),
        ([ids(0), ids(6)], "samples of client 1 must be .* in \\[0, 5\\]"),
        ([ids(0)], "number of clients must be 2, got 1"),
        (RaggedPositions.from_client_rows([ids(0), ids(9)]), "samples of all clients"),
        ({0: ids(0)}, "a Sequence"),
    ],
)
def test_a_wrong_partition_is_described(parts: object, message: str) -> None:
    with pytest.raises(ComponentError, match=message):
        data_contracts.check_split(None, parts, STOCK, 2)


def test_flipped_labels_are_classes() -> None:
    with pytest.raises(ComponentError, match="in \\[0, 1\\]"):
        data_contracts.check_flipped_labels(None, ids(0, 2), ids(0, 1), 0.5, 2, None)
