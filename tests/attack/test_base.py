"""Attackers of a run: their number, and that they are those of every attack of equal share."""

from typing import Any

import pytest

from config_options import list_options, make_component
from fedcohort.errors import OptionError
from fedcohort.rng import new_generator

SHARED = [choice for choice in list_options("attack") if choice != "none"]


@pytest.mark.parametrize(("fraction", "clients", "count"), [(0.0, 12, 0), (0.07, 100, 7), (0.25, 12, 3), (1.0, 5, 5)])
def test_every_attack_of_a_seed_has_the_same_attackers(fraction: float, clients: int, count: int) -> None:
    """The share is rounded up, although .07 * 100 is 7.000000000000001."""

    def attackers(choice: str, seed: int = 3) -> list[int]:
        attack: Any = make_component("attack", choice, fraction=fraction)
        drawn: list[int] = attack.attacker_ids(clients, new_generator(seed, "attack")).tolist()
        return drawn

    drawn = [attackers(choice) for choice in SHARED]
    assert all(ids == drawn[0] for ids in drawn)
    assert drawn[0] == sorted(set(drawn[0]))
    assert len(drawn[0]) == count
    if count == 7:
        assert attackers("alie", seed=4) != drawn[0]


def test_an_attacker_share_out_of_range_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"fraction must be a number in \[0, 1\], got 1.5"):
        make_component("attack", "sign_flip", fraction=1.5)
