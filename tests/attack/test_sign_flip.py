"""Sign flip: closed forms."""

import torch

from config_options import make_component
from fedcohort.attack.base import UpdateStats
from fedcohort.rng import new_generator

STATS, RNG = UpdateStats(None, None, 3, 2), new_generator(0, "attack_update")


def test_the_opposite_of_the_trained_update_is_sent() -> None:
    update = torch.tensor([1.0, -2.0]).double()
    assert make_component("attack", "sign_flip").send(update, STATS, RNG).tolist() == [-1, 2]
    assert make_component("attack", "sign_flip", scale=3).send(update, STATS, RNG).tolist() == [-3, 6]
