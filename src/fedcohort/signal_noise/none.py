"""No noise: clients report the numbers that they measured.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

from fedcohort.signal_noise.base import SignalNoise


@dataclass(frozen=True)
class NoSignalNoise(SignalNoise):
    """The absence of noise; it has no options."""
