"""No noise: clients report the numbers that they measured.

Departures from the paper: none (no paper).
"""

from dataclasses import dataclass

from fedcohort.signal_noise.base import SignalNoise


@dataclass(frozen=True)
class NoSignalNoise(SignalNoise):
    """Signals without noise: clients report the numbers that they measured. There are no options."""
