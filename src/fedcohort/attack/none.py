"""No attack: all clients report the values that they measured."""

from dataclasses import dataclass

from fedcohort.attack.base import Attack


@dataclass(frozen=True)
class NoAttack(Attack):
    """The attack; it has no options."""
