"""Seconds of devices that were measured: the mean and the deviation of their training, and of either link.

    t_i = max(least_i, N(mu_i, sigma_i))   seconds of training on a sample, drawn for each client and round
    v_i = max(u_i / 10, N(u_i, s_i))       bytes a second, each link drawn by itself
    down = bytes / v_i,   unit = samples t_i

Forward passes go at the speed of the same round. A link is no slower than a tenth of its mean: with deviations as large
as the mean, what is drawn near 0 would take for ever.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.device.base import Timing, Workload
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

SLOWEST = 0.1  # of a link's mean
SPREAD = np.linspace(-9.0, 9.0, 3601)  # a standard normal's values, and what each weighs in an expectation
DENSITY = np.exp(-(SPREAD**2) / 2) / np.exp(-(SPREAD**2) / 2).sum()
DIGITS = 4  # of a deviation in means: a million clients with one of their own would be integrated for minutes
AT_ONCE = 1000  # deviations that are integrated together


@dataclass(frozen=True)
class Link:
    """One direction of clients' links, each array [clients].

    Attributes:
        mean: bytes a second.
        deviation: between rounds, bytes a second.
        excess: mean seconds of a byte, in those at the mean speed.
    """

    mean: Values
    deviation: Values
    excess: Values

    @classmethod
    def of(cls, mean: Values, deviation: Values) -> "Link":
        return cls(mean, deviation, average(deviation / mean, np.full(len(mean), SLOWEST), power=-1))

    def take(self, rows: Ids) -> "Link":
        """Return the links of the clients in `rows`."""
        return Link(self.mean[rows], self.deviation[rows], self.excess[rows])

    def expect(self, sent: Values) -> Values:
        """Return the mean seconds of so many bytes, which are more than the seconds at the mean speed."""
        seconds: Values = sent / self.mean * self.excess
        return seconds

    def sample(self, sent: Values, z: Values) -> Values:
        """Return the seconds of so many bytes, given standard normal draws."""
        seconds: Values = sent / np.maximum(SLOWEST * self.mean, self.mean + z * self.deviation)
        return seconds


@dataclass(frozen=True)
class Speeds:
    """What was measured of some clients, each array [clients].

    Attributes:
        mean: seconds of training on a sample.
        deviation: between rounds, seconds.
        least: of any round, seconds.
        expected: mean of what is drawn and no less than that, seconds.
    """

    mean: Values
    deviation: Values
    least: Values
    expected: Values
    down: Link
    up: Link

    @classmethod
    def of(cls, mean: Values, deviation: Values, least: Values, down: Link, up: Link) -> "Speeds":
        return cls(mean, deviation, least, mean * average(deviation / mean, least / mean, power=1), down, up)

    def take(self, rows: Ids) -> "Speeds":
        """Return the speeds of the clients in `rows`."""
        mean, deviation, least, expected = self.mean[rows], self.deviation[rows], self.least[rows], self.expected[rows]
        return Speeds(mean, deviation, least, expected, self.down.take(rows), self.up.take(rows))

    def expect(self, work: Workload) -> Timing:
        """Mean seconds over the rounds."""
        return self._timing(work, self.expected, self.down.expect(work.bytes_down), self.up.expect(work.bytes_up))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Seconds in the round of `draws`; clients: whose speeds these are."""
        train, down, up = (
            draws.generator(purpose).standard_normal(draws.n_clients)[clients]
            for purpose in ("latency", "download", "upload")
        )
        seconds = np.maximum(self.least, self.mean + train * self.deviation)
        return self._timing(work, seconds, self.down.sample(work.bytes_down, down), self.up.sample(work.bytes_up, up))

    def _timing(self, work: Workload, seconds: Values, down: Values, up: Values) -> Timing:
        trained = work.epochs * seconds  # of a sample-time
        return Timing(down=down, infer=work.infer_load * trained, unit=work.load * trained, up=up)


def average(deviation: Values, least: Values, power: int) -> Values:
    """Return E[max(least, 1 + deviation Z)^power], with Z standard normal, by the trapezoidal rule, [clients]."""
    pairs = deviation.round(DIGITS) + 1j * least  # complex numbers, as rows would take much longer to sort
    kinds, kind = np.unique(pairs, return_inverse=True)
    means = np.empty(len(kinds))
    for start in range(0, len(kinds), AT_ONCE):
        own = kinds[start : start + AT_ONCE, None]
        drawn = np.maximum(own.imag, 1.0 + own.real * SPREAD) ** power
        means[start : start + AT_ONCE] = (drawn * DENSITY).sum(axis=1)  # a product of matrices would round by company
    found: Values = means[kind]
    return found
