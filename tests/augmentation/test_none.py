"""No augmentation: no random number is drawn, samples stay unchanged, and the choice of the engine does not change."""

import numpy as np
import torch

from fedcohort.augmentation.none import NoAugmentation


def test_samples_are_unchanged() -> None:
    x, rng = torch.ones(2, 1, 3, 3), np.random.default_rng(0)
    assert NoAugmentation().identity
    assert NoAugmentation().change(x, rng) is x
    assert rng.random() == np.random.default_rng(0).random()
