"""FedSS with losses by hand: clients above the 80th percentile of sizes train on that many samples, the hardest."""

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.samples.base import SampleRequest
from fedcohort.samples.fedss_loss import FedssLoss
from fedcohort.types import Population


def population(*n: int) -> Population:
    return Population(len(n), 6, 1, {"n_train": np.array(n)})


def request(losses: np.ndarray) -> SampleRequest:
    return SampleRequest(0, len(losses), 1.0, 0.0, 1.0, 5, 2, losses, lambda purpose: np.random.default_rng(0))


def test_the_percentile_by_hand() -> None:
    """The 80th percentile of five lies .2 of the way from the fourth, 40, to the fifth, 100."""
    part = FedssLoss(80.0)
    q = part.init(population(10, 20, 30, 40, 100))
    assert q == pytest.approx(52)
    assert part.stores_losses(q, np.array([10, 51, 53, 100])).tolist() == [False, False, True, True]
    assert len(part.choose(q, request(np.arange(100.0)))) == 52
    assert part.choose(q, request(np.zeros(40))).tolist() == list(range(40))


def test_the_hardest_samples_and_the_first_of_ties() -> None:
    assert FedssLoss(80.0).choose(2.0, request(np.array([3.0, 1.0, 3.0, 2.0]))).tolist() == [0, 2]
    assert FedssLoss(80.0).choose(2.0, request(np.array([1.0, 3.0, 3.0, 3.0]))).tolist() == [1, 2]


def test_a_client_trains_on_one_sample_at_least() -> None:
    """A percentile of clients of which many have no samples may be below 1."""
    assert FedssLoss(80.0).choose(0.5, request(np.array([1.0, 3.0]))).tolist() == [1]


def test_equal_clients_train_on_all_samples() -> None:
    part = FedssLoss(80.0)
    assert part.choose(part.init(population(7, 7, 7)), request(np.arange(7.0))).tolist() == list(range(7))


@pytest.mark.parametrize("wrong", [-1.0, 101.0])
def test_fedss_options_out_of_range_are_rejected(wrong: float) -> None:
    with pytest.raises(OptionError, match="percentile"):
        FedssLoss(wrong)
