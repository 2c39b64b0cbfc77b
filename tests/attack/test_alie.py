"""ALIE: the shift by hand in both readings of the formula."""

import pytest
import torch

from config_options import make_component
from fedcohort.attack.alie import alie_attack_factor
from fedcohort.attack.base import UpdateStats
from fedcohort.rng import new_generator

MEAN, STD = torch.tensor([2.0, 1.0]).double(), torch.tensor([1.0, 1.0]).double()  # of (1, 0), (2, 2) and (3, 1)
STATS, EMPTY = UpdateStats(MEAN, STD, 3, 2), UpdateStats(None, None, 0, 2)
TRAINED_UPDATE = torch.tensor([2.0, 2.0]).double()


@pytest.mark.parametrize(
    ("n", "f", "honest", "of_all"),
    [(50, 24, 1.42607687, 1.75068607), (10, 3, 0.18001237, 0.52440051), (9, 4, 0.84162123, 1.22064035)],
)
def test_the_largest_undetected_shift_by_hand(n: int, f: int, honest: float, of_all: float) -> None:
    """n = 50 and f = 24: q = 2, so that shares are 24 / 26 and 48 / 50. n = 10 and f = 3: q = 3, 4 / 7 and 7 / 10."""
    assert alie_attack_factor(n - f, f, "honest") == pytest.approx(honest)
    assert alie_attack_factor(n - f, f, "all") == pytest.approx(of_all)


def test_no_shift_is_negative_and_a_majority_has_a_fixed_one() -> None:
    """n = 10 and f = 1: q = 5, share 4 / 9. n = 2 and f = 1: q = 1, share 0. n = 4 and f = 3: q = 0."""
    assert alie_attack_factor(9, 1, "honest") == alie_attack_factor(1, 1, "honest") == 0
    assert alie_attack_factor(1, 3, "honest") == pytest.approx(2.32634787)


def test_the_mean_is_shifted_in_each_parameter() -> None:
    """Of n = 5 updates f = 2: q = 1, z = Phi^-1(2 / 3) = 0.4307273."""
    rng = new_generator(0, "attack_update")
    assert make_component("attack", "alie").send(TRAINED_UPDATE, STATS, rng).tolist() == pytest.approx(
        [1.5692727, 0.5692727]
    )
    assert make_component("attack", "alie", z=-2.0).send(TRAINED_UPDATE, STATS, rng).tolist() == [4, 3]
    assert make_component("attack", "alie").send(TRAINED_UPDATE, EMPTY, rng) is TRAINED_UPDATE
