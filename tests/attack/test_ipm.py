"""IPM: closed forms, and the factor at which the mean of all updates turns round."""

import pytest
import torch

from config_options import make_component
from fedcohort.attack.base import UpdateStats
from fedcohort.rng import new_generator

MEAN, STD = torch.tensor([2.0, 1.0]).double(), torch.tensor([1.0, 1.0]).double()  # of (1, 0), (2, 2) and (3, 1)
STATS, EMPTY = UpdateStats(MEAN, STD, 3, 2), UpdateStats(None, None, 0, 2)
TRAINED_UPDATE = torch.tensor([2.0, 2.0]).double()


def test_every_attacker_sends_the_scaled_opposite_mean() -> None:
    attack, rng = make_component("attack", "ipm"), new_generator(0, "attack_update")
    assert attack.send(TRAINED_UPDATE, STATS, rng).tolist() == [-1, -0.5]
    assert attack.send(TRAINED_UPDATE, EMPTY, rng) is TRAINED_UPDATE


@pytest.mark.parametrize(("epsilon", "first"), [(1.4, 0.08), (1.5, 0.0), (2.0, -0.4)])
def test_the_mean_turns_round_above_the_ratio_of_honest_to_false_updates(epsilon: float, first: float) -> None:
    """Three honest updates of mean (2, 1) and two of -epsilon times that: (3 - 2 epsilon) / 5 of the mean."""
    false = make_component("attack", "ipm", epsilon=epsilon).send(
        TRAINED_UPDATE, STATS, new_generator(0, "attack_update")
    )
    assert ((3 * MEAN + 2 * false) / 5).tolist() == pytest.approx([first, first / 2], abs=1e-9)
