import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.partition.base import SamplePool
from fedcohort.partition.iid import Iid

LABELS = np.arange(1003) % 10


def split(clients: int | None, seed: int = 0) -> list[np.ndarray]:
    return list(Iid().split(SamplePool(LABELS, 10), clients, np.random.default_rng(seed)))


@pytest.mark.parametrize("clients", [1, 7, 50, 1003])
def test_iid_client_sizes_differ_by_at_most_one(clients: int) -> None:
    sizes = [len(part) for part in split(clients)]
    assert set(sizes) <= {1003 // clients, 1003 // clients + 1}
    assert sum(sizes) == 1003


def test_every_sample_can_go_to_every_client() -> None:
    """Sample 0 is with each of 4 clients about 500 times in 2000."""
    owners = [next(k for k, part in enumerate(split(4, seed)) if part[0] == 0) for seed in range(2000)]
    assert np.abs(np.bincount(owners, minlength=4) - 500).max() < 4.5 * np.sqrt(2000 * 3 / 16)


def test_an_infeasible_number_of_clients_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"clients=1004 exceeds the 1003 .* clients<=1003"):
        split(1004)
    with pytest.raises(OptionError, match=r"clients=null .*partition=iid has none: clients must be .*\], got null$"):
        split(None)
