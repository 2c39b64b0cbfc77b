"""Everybody tells the truth."""

from dataclasses import dataclass

from fedcohort.attack.base import Attack


@dataclass(frozen=True)
class NoAttack(Attack):
    """It has no options."""
