"""Three classes of phones and nineteen links, as measured by the FLASH benchmark (Yang et al. 2021).

Yang et al., "Characterizing Impacts of Heterogeneity in Federated Learning upon Large-Scale Smartphone Data", WWW 2021,
arXiv 2006.06983. The benchmark is not the method of selector=flash. Its figures are used as in FedBalancer (Shin et
al., MobiSys 2022).

    t_i:  max(1 ms, N(mu_c, sigma_c)) scale / batch, seconds of training on a sample; c is i's class of phones
    v_i:  max(u_l / 10, N(u_l, s_l)), KiB a second, down and up; l is i's link
    T_i:  bytes / 1024 v_down + E n_i t_i + bytes / 1024 v_up

A client's class (in proportion to 18820 : 16428 : 159) and its link (uniformly) are drawn once a run, independently.
Speeds are drawn for each client and round, the same for all of its batches. `har` is FEMNIST scaled by the ratio of the
two models' bytes.

Departures from the papers:
- Samples are counted, not batches, so that half of the samples take half of the time (`device.base.Workload`). 95
  samples in batches of 10 take the time of 9.5 batches, not of 10.
- A link is no slower than a tenth of its mean. The benchmark draws again while a speed is negative, which leaves speeds
  near 0 and unbounded durations.
- The expectation is the mean of the seconds. FedBalancer plans with the seconds at mean speeds, which are fewer.
- A forward pass takes a third of an epoch, as everywhere here; FedBalancer charges half of one.
- Links are read as KiB a second, as in the benchmark's code, which names the unit "kb/s".
- The batch is known to be 100 for Shakespeare; 10 for the others is from FedBalancer's settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort import ranges
from fedcohort.device.base import Device, Timing, Workload
from fedcohort.device.measured import DeviceSpeeds, LinkSpeeds
from fedcohort.errors import OptionError
from fedcohort.rng import Draws
from fedcohort.types import Ids

BYTES_PER_KIB = 1024.0
MIN_BATCH_MS = 1.0  # shortest time of a batch


@dataclass(frozen=True)
class BatchTime:
    """The measured training time of a batch of one network on three phones.

    Attributes:
        batch_size: samples of a batch.
        phone_ms: mean and standard deviation of a batch's milliseconds, on a Nexus 6, a Redmi Note 8 and a Galaxy Note
            10. They stand for phones like a Nexus S, a Redmi Note 7 Pro and a Pixel 4.
    """

    batch_size: int
    phone_ms: tuple[tuple[float, float], ...]


FEMNIST_BATCH_TIME = BatchTime(10, ((1642.0, 99.5), (588.0, 23.9), (179.0, 2.3)))
HAR_TIME_RATIO = 25305880 / 26414840  # of FEMNIST's milliseconds
BATCH_TIMES: Mapping[str, BatchTime] = {
    "femnist": FEMNIST_BATCH_TIME,
    "celeba": BatchTime(10, ((5392.0, 982.5), (1355.0, 54.6), (561.0, 20.3))),
    "reddit": BatchTime(10, ((2596.0, 335.5), (916.0, 20.6), (527.7, 49.0))),
    "shakespeare": BatchTime(100, ((28621.0, 1720.7), (13579.0, 104.6), (10681.0, 125.6))),
    "har": BatchTime(
        10, tuple((HAR_TIME_RATIO * mean_ms, HAR_TIME_RATIO * sd_ms) for mean_ms, sd_ms in FEMNIST_BATCH_TIME.phone_ms)
    ),
}

LINK_SPEEDS = np.array(  # of nineteen people, KiB a second: mean and deviation down, mean and deviation up
    [
        (7491.40, 3369.30, 4935.20, 2767.32),
        (4054.80, 1819.53, 3006.20, 890.08),
        (2370.21, 1388.18, 2774.24, 1096.95),
        (9913.00, 1551.04, 6635.41, 1459.54),
        (4208.66, 1481.62, 2974.47, 833.16),
        (3778.45, 2843.44, 2631.61, 1576.36),
        (3472.74, 1276.73, 5140.58, 2277.36),
        (4668.42, 612.61, 3205.47, 419.35),
        (3297.70, 771.33, 2336.61, 1609.95),
        (4283.58, 1560.97, 3641.61, 1495.02),
        (3658.14, 1315.89, 2546.86, 1089.04),
        (7214.08, 3363.21, 4039.69, 2189.02),
        (8885.47, 1999.11, 6278.57, 489.10),
        (5125.00, 2087.60, 3729.75, 461.48),
        (7271.27, 1914.01, 5742.53, 1964.13),
        (4317.63, 1264.95, 3285.69, 1018.30),
        (6708.07, 6738.47, 664.60, 312.00),
        (17332.68, 11181.57, 5641.45, 2549.77),
        (3176.81, 1837.99, 430.97, 157.73),
    ]
)
DOWNLINKS = LinkSpeeds.from_moments(*(BYTES_PER_KIB * LINK_SPEEDS[:, :2].T))
UPLINKS = LinkSpeeds.from_moments(*(BYTES_PER_KIB * LINK_SPEEDS[:, 2:].T))


@dataclass(frozen=True)
class Phones(Device):
    """A device model with the measured speeds of three classes of phones and of nineteen links.

    Attributes:
        workload: name of the network whose measured times are used.
        scale: factor of these times, the FLOPs of the run's network over those of the measured one.
        proportions: proportions of clients with slow, medium and fast phones.
    """

    workload: str
    scale: float
    proportions: Sequence[float]

    def __post_init__(self) -> None:
        ranges.choice("workload", self.workload, *BATCH_TIMES)
        ranges.number("scale", self.scale, "[1e-9, 1e9]")
        ranges.numbers("proportions", self.proportions, "[0, 1e15]")
        if len(self.proportions) != 3 or not sum(self.proportions) > 0:
            raise OptionError(
                f"proportions must be three numbers, of slow, medium and fast phones, not all 0, got {self.proportions}"
            )

    def expect(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work, as means over rounds.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the run, which give each client a class of phones and a link.
        """
        return self._make_speeds(clients, draws).expect(work)

    def sample(self, clients: Ids, work: Workload, draws: Draws) -> Timing:
        """Return the seconds of each phase of the work in one round.

        Args:
            clients: ids of the clients.
            work: work of each client.
            draws: random numbers of the round, for the speeds.
        """
        return self._make_speeds(clients, draws).sample(clients, work, draws)

    def _make_speeds(self, clients: Ids, draws: Draws) -> DeviceSpeeds:
        draws_of_run, batch_time = draws.draws_of_run(), BATCH_TIMES[self.workload]
        cumulative_proportions = np.cumsum(self.proportions)
        phone_class_bounds = cumulative_proportions / cumulative_proportions[-1]
        phone_class_of_client = np.searchsorted(
            phone_class_bounds, draws_of_run.uniform("phone")[clients], side="right"
        )
        link_of_client = (len(LINK_SPEEDS) * draws_of_run.uniform("link")[clients]).astype(np.int64)
        sample_s_per_batch_ms = self.scale / (
            1000 * batch_time.batch_size
        )  # seconds of a sample by a batch's milliseconds
        mean_s, deviation_s = (sample_s_per_batch_ms * np.array(batch_time.phone_ms)[phone_class_of_client]).T
        min_s = np.full(len(clients), MIN_BATCH_MS * sample_s_per_batch_ms)
        client_links = DOWNLINKS.select_rows(link_of_client), UPLINKS.select_rows(link_of_client)
        return DeviceSpeeds.from_moments(mean_s, deviation_s, min_s, *client_links)
