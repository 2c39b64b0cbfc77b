import numpy as np

from fedcohort.samples.all import All
from fedcohort.samples.base import SampleRequest


def test_all_samples_are_selected_without_reading_losses() -> None:
    assert not All().keeps_losses  # a look is charged
    request = SampleRequest(3, 5, 0.1, 0.0, 9.0, 5, 2, np.empty(0), lambda purpose: np.random.default_rng(0))
    assert All().choose(None, request).tolist() == [0, 1, 2, 3, 4]
