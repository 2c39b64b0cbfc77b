"""Devices with measured means and deviations of the training time and of both links.

    t_i:  max(least_i, N(mu_i, sigma_i)), seconds of training on a sample, drawn for each client and round
    v_i:  max(u_i / 10, N(u_i, s_i)), bytes a second, drawn for each link separately
    phases:  down = bytes / v_i,  unit = samples t_i

Forward passes have the speed of the same round. A link is no slower than a tenth of its mean: with deviations as large
as the mean, draws near 0 would take unbounded time.
"""

from dataclasses import dataclass

import numpy as np

from fedcohort.device.base import Timing, Workload
from fedcohort.rng import Draws
from fedcohort.types import Ids, Values

MIN_SPEED = 0.1  # lower bound of a link's speed, in its mean
NORMAL_GRID = np.linspace(-9.0, 9.0, 3601)  # values of a standard normal, for expectations
GRID_WEIGHTS = np.exp(-(NORMAL_GRID**2) / 2) / np.exp(-(NORMAL_GRID**2) / 2).sum()  # their weights
DIGITS = 4  # of a relative deviation: a million different ones would take minutes to integrate
BLOCK = 1000  # deviations that are integrated together


@dataclass(frozen=True)
class Link:
    """The speeds of the clients' downlinks or uplinks, each array [clients].

    Attributes:
        mean: speed in bytes a second.
        deviation: standard deviation of the speed between rounds, bytes a second.
        excess: mean seconds of a byte over those at the mean speed.
    """

    mean: Values
    deviation: Values
    excess: Values

    @classmethod
    def from_moments(cls, mean: Values, deviation: Values) -> "Link":
        """Return links with these means and standard deviations of their speeds, in bytes a second, [clients]."""
        return cls(mean, deviation, bounded_normal_moment(deviation / mean, np.full(len(mean), MIN_SPEED), power=-1))

    def take(self, rows: Ids) -> "Link":
        """Return the links of the clients in `rows`."""
        return Link(self.mean[rows], self.deviation[rows], self.excess[rows])

    def expect(self, n_bytes: Values) -> Values:
        """Return the mean seconds of `n_bytes` bytes, which exceed the seconds at the mean speed."""
        seconds: Values = n_bytes / self.mean * self.excess
        return seconds

    def sample(self, n_bytes: Values, z: Values) -> Values:
        """Return the seconds of `n_bytes` bytes, given standard normal draws z."""
        seconds: Values = n_bytes / np.maximum(MIN_SPEED * self.mean, self.mean + z * self.deviation)
        return seconds


@dataclass(frozen=True)
class Speeds:
    """The measured seconds of training and the link speeds of some clients, each array [clients].

    Attributes:
        mean: seconds of training on a sample.
        deviation: standard deviation of these seconds between rounds.
        least: lower bound of the seconds in any round.
        expected: mean of the bounded draws, in seconds.
        down: downlink.
        up: uplink.
    """

    mean: Values
    deviation: Values
    least: Values
    expected: Values
    down: Link
    up: Link

    @classmethod
    def from_moments(cls, mean: Values, deviation: Values, least: Values, down: Link, up: Link) -> "Speeds":
        """Return clients with these means and standard deviations of seconds per sample, and these links."""
        return cls(
            mean, deviation, least, mean * bounded_normal_moment(deviation / mean, least / mean, power=1), down, up
        )

    def take(self, rows: Ids) -> "Speeds":
        """Return the speeds of the clients in `rows`."""
        mean, deviation, least, expected = self.mean[rows], self.deviation[rows], self.least[rows], self.expected[rows]
        return Speeds(mean, deviation, least, expected, self.down.take(rows), self.up.take(rows))

    def expect(self, work: Workload) -> Timing:
        """Return the seconds of each phase of the work, as means over rounds."""
        return self._timing(work, self.expected, self.down.expect(work.bytes_down), self.up.expect(work.bytes_up))

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds in the round of `draws`, for the clients with these ids."""
        train, down, up = (
            draws.generator(purpose).standard_normal(draws.n_clients)[clients]
            for purpose in ("latency", "download", "upload")
        )
        seconds = np.maximum(self.least, self.mean + train * self.deviation)
        return self._timing(work, seconds, self.down.sample(work.bytes_down, down), self.up.sample(work.bytes_up, up))

    def _timing(self, work: Workload, seconds: Values, down: Values, up: Values) -> Timing:
        sample_s = work.epochs * seconds  # of a sample-time
        return Timing(down=down, infer=work.infer_load * sample_s, unit=work.load * sample_s, up=up)


def bounded_normal_moment(deviation: Values, least: Values, power: int) -> Values:
    """Return E[max(least, 1 + deviation Z)^power], Z standard normal, by the trapezoidal rule, [clients]."""
    pairs = deviation.round(DIGITS) + 1j * least  # complex numbers, as rows would take much longer to sort
    distinct_pairs, pair_index = np.unique(pairs, return_inverse=True)
    means = np.empty(len(distinct_pairs))
    for start in range(0, len(distinct_pairs), BLOCK):
        block = distinct_pairs[start : start + BLOCK, None]
        bounded_powers = np.maximum(block.imag, 1.0 + block.real * NORMAL_GRID) ** power
        means[start : start + BLOCK] = (bounded_powers * GRID_WEIGHTS).sum(
            axis=1
        )  # a matrix product would round by its size
    by_client: Values = means[pair_index]
    return by_client
