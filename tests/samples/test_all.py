import numpy as np

from fedcohort.samples.all import All
from fedcohort.samples.base import SampleRequest


def test_every_position_without_a_look_at_the_losses() -> None:
    def losses() -> np.ndarray:
        raise AssertionError("losses are charged, and all samples need none")

    request = SampleRequest(3, 5, 0.1, 9.0, 5, losses, lambda: np.random.default_rng(0))
    assert All().choose(None, request).tolist() == [0, 1, 2, 3, 4]
