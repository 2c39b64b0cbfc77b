"""Gaussian noise: its size, its generator, and what is sent without knowledge."""

import numpy as np
import torch

from config_options import make_component
from fedcohort.attack.base import UpdateStats
from fedcohort.rng import new_generator

MEAN, STD = torch.tensor([2.0, 1.0]).double(), torch.tensor([1.0, 1.0]).double()  # of (1, 0), (2, 2) and (3, 1)
STATS, EMPTY = UpdateStats(MEAN, STD, 3, 2), UpdateStats(None, None, 0, 2)
TRAINED_UPDATE = torch.tensor([2.0, 2.0]).double()


def test_noise_replaces_the_update_or_is_added_to_it() -> None:
    draws = new_generator(0, "attack_update").standard_normal(2)
    sent_update = make_component("attack", "gaussian", sigma=3.0).send(
        TRAINED_UPDATE, STATS, new_generator(0, "attack_update")
    )
    added = make_component("attack", "gaussian", sigma=3.0, mode="add").send(
        TRAINED_UPDATE, EMPTY, new_generator(0, "attack_update")
    )
    np.testing.assert_allclose(sent_update, 3 * draws)
    np.testing.assert_allclose(added, 2 + 3 * draws)


def test_the_noise_has_the_root_mean_square_of_an_honest_update() -> None:
    """The root mean square of (2, 1) is (5 / 2)^.5; attackers that know nothing send their own trained updates."""
    attack, rng = make_component("attack", "gaussian"), new_generator(0, "attack_update")
    sent_update = attack.send(TRAINED_UPDATE, STATS, rng)
    np.testing.assert_allclose(sent_update, 2.5**0.5 * new_generator(0, "attack_update").standard_normal(2))
    assert attack.send(TRAINED_UPDATE, EMPTY, rng) is TRAINED_UPDATE
