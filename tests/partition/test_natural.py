import numpy as np
import pytest

from fedcohort.errors import DataError, OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.natural import Natural

OWNER = np.array([5, 2, 9, 2, 5, 5, 2, 7])


def split(clients: int | None, owner: np.ndarray | None = OWNER) -> list[list[int]]:
    parts = Natural().split(SamplePool(np.zeros(8, dtype=np.int64), 2, owner), clients, np.random.default_rng(0))
    return [parts[i].tolist() for i in range(len(parts))]


def test_clients_are_the_owners_in_the_order_of_their_ids() -> None:
    assert split(None) == [[1, 3, 6], [0, 4, 5], [7], [2]]


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_fewer_clients_are_the_first_owners(clients: int) -> None:
    assert split(clients) == split(None)[:clients]


def test_too_many_clients_or_missing_owners_are_rejected() -> None:
    with pytest.raises(OptionError, match=r"clients=5 exceeds the 4 natural clients; feasible: clients<=4"):
        split(5)
    with pytest.raises(DataError, match=r"needs a client column, .*heterogeneity=iid"):
        split(None, owner=None)
