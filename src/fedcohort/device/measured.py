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

MIN_RELATIVE_SPEED = 0.1  # lower bound of a link's speed, as a share of its mean
NORMAL_GRID = np.linspace(-9.0, 9.0, 3601)  # values of a standard normal, for expectations
NORMAL_GRID_WEIGHTS = np.exp(-(NORMAL_GRID**2) / 2) / np.exp(-(NORMAL_GRID**2) / 2).sum()  # their weights
DEVIATION_DECIMALS = 4  # of a relative deviation: a million different ones would take minutes to integrate
MOMENT_PAIRS_PER_BLOCK = 1000  # deviations that are integrated together


@dataclass(frozen=True)
class LinkSpeeds:
    """The speeds of the clients' downlinks or uplinks, each array [clients].

    Attributes:
        mean_speed: mean speed in bytes a second.
        speed_sd: standard deviation of the speed between rounds, in bytes a second.
        mean_time_factor: mean seconds per byte, divided by the seconds per byte at the mean speed.
    """

    mean_speed: Values
    speed_sd: Values
    mean_time_factor: Values

    @classmethod
    def from_moments(cls, mean_speed: Values, speed_sd: Values) -> "LinkSpeeds":
        """Return links with the given means and standard deviations of their speeds.

        Args:
            mean_speed: mean speed of each link in bytes a second, [clients].
            speed_sd: standard deviation of its speed between rounds in bytes a second, [clients].
        """
        lower_bound = np.full(len(mean_speed), MIN_RELATIVE_SPEED)
        return cls(mean_speed, speed_sd, compute_bounded_moment(speed_sd / mean_speed, lower_bound, moment_order=-1))

    def select_rows(self, positions: Ids) -> "LinkSpeeds":
        """Return the links at the given `positions` in the arrays."""
        return LinkSpeeds(self.mean_speed[positions], self.speed_sd[positions], self.mean_time_factor[positions])

    def expect(self, n_sent_bytes: Values) -> Values:
        """Return the mean seconds in which each link transfers `n_sent_bytes` bytes, [clients]."""
        return np.asarray(n_sent_bytes / self.mean_speed * self.mean_time_factor)

    def sample(self, n_sent_bytes: Values, normal_draws: Values) -> Values:
        """Return the seconds in which each link transfers its bytes in one round, [clients].

        Args:
            n_sent_bytes: bytes that each link transfers, [clients].
            normal_draws: standard normal draws, [clients].
        """
        drawn_speeds = np.maximum(MIN_RELATIVE_SPEED * self.mean_speed, self.mean_speed + normal_draws * self.speed_sd)
        return np.asarray(n_sent_bytes / drawn_speeds)


@dataclass(frozen=True)
class DeviceSpeeds:
    """The measured seconds of training and the link speeds of some clients, each array [clients].

    Attributes:
        mean_s: mean seconds of training on a sample.
        deviation_s: standard deviation of these seconds between rounds.
        min_s: lower bound of these seconds in any round.
        expected_s: mean seconds of training on a sample, with the lower bound.
        downlink: speeds of the downlinks.
        uplink: speeds of the uplinks.
    """

    mean_s: Values
    deviation_s: Values
    min_s: Values
    expected_s: Values
    downlink: LinkSpeeds
    uplink: LinkSpeeds

    @classmethod
    def from_moments(
        cls, mean_s: Values, deviation_s: Values, min_s: Values, downlink: LinkSpeeds, uplink: LinkSpeeds
    ) -> "DeviceSpeeds":
        """Return the devices of clients with the given means and standard deviations.

        Args:
            mean_s: mean seconds of training on a sample, [clients].
            deviation_s: standard deviation of these seconds between rounds, [clients].
            min_s: lower bound of these seconds in any round, [clients].
            downlink: speeds of the downlinks.
            uplink: speeds of the uplinks.
        """
        expected_s = mean_s * compute_bounded_moment(deviation_s / mean_s, min_s / mean_s, moment_order=1)
        return cls(mean_s, deviation_s, min_s, expected_s, downlink, uplink)

    def select_rows(self, positions: Ids) -> "DeviceSpeeds":
        """Return the speeds of the clients at the given `positions` in the arrays."""
        mean_s, deviation_s = self.mean_s[positions], self.deviation_s[positions]
        min_s, expected_s = self.min_s[positions], self.expected_s[positions]
        selected_links = self.downlink.select_rows(positions), self.uplink.select_rows(positions)
        return DeviceSpeeds(mean_s, deviation_s, min_s, expected_s, *selected_links)

    def expect(self, work: Workload) -> Timing:
        """Return the seconds of each phase of `work`, as means over rounds."""
        down_s, up_s = self.downlink.expect(work.bytes_down), self.uplink.expect(work.bytes_up)
        return self._make_timing(work, self.expected_s, down_s, up_s)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work in one round.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the round, for the speeds.
        """
        train_draws, down_draws, up_draws = (
            draws.generator(draw_purpose).standard_normal(draws.n_clients)[clients]
            for draw_purpose in ("latency", "download", "upload")
        )
        sample_time_s = np.maximum(self.min_s, self.mean_s + train_draws * self.deviation_s)
        down_s, up_s = self.downlink.sample(work.bytes_down, down_draws), self.uplink.sample(work.bytes_up, up_draws)
        return self._make_timing(work, sample_time_s, down_s, up_s)

    def _make_timing(self, work: Workload, seconds_per_sample: Values, down_s: Values, up_s: Values) -> Timing:
        sample_time_s = work.epochs * seconds_per_sample  # of a sample-time
        return Timing(
            down_s=down_s, infer_s=work.infer_load * sample_time_s, unit_s=work.unit_load * sample_time_s, up_s=up_s
        )


def compute_bounded_moment(relative_sd: Values, lower_bound: Values, moment_order: int) -> Values:
    """Return E[max(l, 1 + d Z)^p] of each client, [clients], with Z standard normal, by the trapezoidal rule.

    Args:
        relative_sd: d, standard deviation divided by the mean, [clients]; it is rounded to `DEVIATION_DECIMALS`.
        lower_bound: l, lower bound divided by the mean, [clients].
        moment_order: p, order of the moment.
    """
    sd_bound_pairs = relative_sd.round(DEVIATION_DECIMALS) + 1j * lower_bound  # complex: rows would take long to sort
    distinct_pairs, index_of_pair = np.unique(sd_bound_pairs, return_inverse=True)
    moment_by_pair = np.empty(len(distinct_pairs))
    for first_pair_number in range(0, len(distinct_pairs), MOMENT_PAIRS_PER_BLOCK):
        pairs_in_block = distinct_pairs[first_pair_number : first_pair_number + MOMENT_PAIRS_PER_BLOCK, None]
        truncated_powers = np.maximum(pairs_in_block.imag, 1.0 + pairs_in_block.real * NORMAL_GRID) ** moment_order
        block_moments = (truncated_powers * NORMAL_GRID_WEIGHTS).sum(axis=1)  # a matrix product would round by its size
        moment_by_pair[first_pair_number : first_pair_number + MOMENT_PAIRS_PER_BLOCK] = block_moments
    return np.asarray(moment_by_pair[index_of_pair])
