import numpy as np
import pytest

from fedcohort.availability.bernoulli import Bernoulli
from fedcohort.rng import Draws


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_the_share_of_ready_clients_is_p(p: float) -> None:
    ready = np.stack([Bernoulli(p).ready(Draws(1, 500, t)) for t in range(100)])
    assert ready.mean() == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 50_000))
    # No client is favoured: means over rounds spread as 100 independent trials do.
    assert ready.mean(0).std() == pytest.approx(np.sqrt(p * (1 - p) / 100), rel=0.15)


def test_with_p_1_all_clients_are_always_ready() -> None:
    assert Bernoulli(1.0).ready(Draws(0, 1000, 5)).all()


def test_clients_ready_at_a_smaller_p_are_ready_at_a_larger_one() -> None:
    ready_at_30, ready_at_60 = (Bernoulli(p).ready(Draws(0, 300, 4)) for p in (0.3, 0.6))
    assert (ready_at_60 | ~ready_at_30).all()
    assert not np.array_equal(ready_at_30, Bernoulli(0.3).ready(Draws(0, 300, 5)))
    np.testing.assert_array_equal(ready_at_30, Bernoulli(0.3).ready(Draws(0, 300, 4)))
