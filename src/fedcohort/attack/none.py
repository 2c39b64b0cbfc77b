"""No attack: all clients report the values that they measured.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

from fedcohort.attack.base import Attack


@dataclass(frozen=True)
class NoAttack(Attack):
    """A run without attack: all clients report the values that they measured. There are no options."""
