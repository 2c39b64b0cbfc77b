"""Scaling: closed forms."""

import torch

from config_options import make_component
from fedcohort.attack.base import UpdateStats
from fedcohort.rng import new_generator

STATS, RNG = UpdateStats(None, None, 3, 2), new_generator(0, "attack_update")


def test_the_trained_update_is_multiplied() -> None:
    update = torch.tensor([2.0, -2.0]).double()
    assert make_component("attack", "scaling").send(update, STATS, RNG).tolist() == [20, -20]
    assert make_component("attack", "scaling", factor=1).send(update, STATS, RNG).tolist() == [2, -2]
