"""FedBalancer's loss threshold: how the server sets it, and the reports that it needs (Shin et al. 2022).

Shin, Li, Liu, Lee, "FedBalancer: Data and Pace Control for Efficient Federated Learning on Heterogeneous Clients",
MobiSys 2022, arXiv 2201.01601, Algorithms 2 and 3.

    lt:  ll + (lh - ll) ltr, ltr from `maths/pace_control.py`
    ll:  min_i min loss_i
    lh:  mean_i (80th percentile of loss_i)

loss_i is the client's list: the cross-entropy of every sample on the model of the client's first round, updated by the
losses in the first local epoch of each round that it trains in. With OT = {x: loss_i(x) >= lt}, a selector that reads
`loss_count` and `loss_squares` gets |OT| and the sum of squared losses over OT (Sec. 3.2.3): selector=oort is then the
paper's client selection.

Departures from the paper:
- While ltr is 0 the threshold is 0, as in the code. It is never negative, which noise could make it.
- Noise is drawn by the client, also on |OT| and the squares. The code adds it at the server.
- Losses are not bounded, so that noise alone gives no privacy. With clip=C they are clipped at C first. For LLow and
  LHigh, noise = C sqrt(2 ln(1.25 / delta)) / epsilon is then the Gaussian mechanism, with epsilon < 1.
- Privacy loss adds up over rounds: the metric rho is C^2 / noise^2 for each round in which a client's LLow and LHigh
  arrived, of the client that reported most often. Reports with an update that the server excludes (not finite, too long
  or too old) count. This is zero-concentrated differential privacy (Bun and Steinke 2016, Prop. 1.6 and Lemma 2.3), of
  which epsilon = rho + 2 sqrt(rho ln(1 / delta)). It covers these two numbers. |OT| and the squares depend on all
  losses, and sums of losses and the update are sent without noise.
- Reports that are not finite are ignored.
- A list changes when the client's update is applied; a late client keeps its first losses. Its |OT| and squares are
  those of the threshold that it received with its job.
- as_released=true follows the authors' code: ll and lh are over all rounds so far, and a client reports on its whole
  list before training, with OT the losses strictly above lt.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import ANNOUNCED_DEADLINE, TIMED_DEVICE, Requirement
from fedcohort.ledger import BYTES_PER_NUMBER
from fedcohort.maths.pace_control import PaceControl, PaceState, pace_utility
from fedcohort.samples.base import CLEAN_LABELS_REQUIREMENT, SampleRequest, Samples
from fedcohort.types import Ids, Population, RoundOutcome, Values

HIGH_LOSS_PERCENTILE = 80  # percentile of a list that is its high loss
NOISY_REPORT_NAMES = ("loss_low", "loss_high", "loss_count", "loss_squares")  # the reports that noise is added to


@dataclass(frozen=True)
class State:
    """The server's state about the clients' losses.

    Attributes:
        pace: the state of the pace controller, which adapts the threshold.
        threshold: loss threshold of the next round, in nats.
        lowest_loss: lowest loss that was reported in the last round with valid reports, or with `as_released` in any
            round, in nats; inf before the first.
        high_loss_sum: sum of the 80th percentiles of losses that were reported in the same rounds, in nats.
        n_high_losses: number of percentiles in this sum.
        n_reports_by_client: number of rounds in which each client's reports arrived, [n_clients].
    """

    pace: PaceState
    threshold: float
    lowest_loss: float
    high_loss_sum: float
    n_high_losses: int
    n_reports_by_client: Ids


@dataclass(frozen=True)
class LossThreshold(Samples[State]):
    """A sample selection by a loss threshold, with its options.

    Attributes:
        w: rounds between the decisions of the pace controller.
        lss: step by which the controller changes the threshold, as a share of the distance from low to high loss.
        p: share of the samples that is taken above the threshold.
        noise: standard deviation of the noise on each report, in its unit.
        clip: upper bound, in nats, to which losses are clipped before they are reported; None for no bound.
        as_released: whether thresholds and reports follow the authors' code instead of the paper.
    """

    w: int
    lss: float
    p: float
    noise: float
    clip: float | None
    as_released: bool

    keeps_losses: ClassVar[bool] = True
    reports_losses: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss_low", "loss_high", "loss_sum", "n_used"})
    bytes_down: ClassVar[int] = BYTES_PER_NUMBER  # the threshold
    requirements: ClassVar[frozenset[Requirement]] = frozenset({ANNOUNCED_DEADLINE, TIMED_DEVICE})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS_REQUIREMENT})

    def __post_init__(self) -> None:
        _ = self.control  # checks the ranges
        ranges.number("p", self.p, "[0, 1]")
        ranges.number("noise", self.noise, "[0, inf)")
        ranges.number("clip", self.clip, "(0, inf)", allow_null=True)
        ranges.flag("as_released", self.as_released)

    @property
    def control(self) -> PaceControl:
        return PaceControl(self.w, lss=self.lss)

    def notices(self, choice: str) -> Sequence[str]:
        """Return a notice that noise on the reports lowers the threshold; `choice` is the option as typed."""
        if not self.noise:
            return ()
        reason_text = "the lowest of many noisy reported losses is below the lowest true loss"
        return (f"samples.noise={self.noise} lowers the threshold of samples={choice}, because {reason_text}",)

    def init(self, population: Population) -> State:
        """Return the state before round 0: no reports of the `population`, and a loss threshold of 0."""
        return State(self.control.first_state(), 0.0, math.inf, 0.0, 0, np.zeros(population.n_clients, dtype=np.int64))

    def sent_threshold(self, state: State) -> float:
        """Return the loss threshold in `state`, in nats, which clients receive with the model."""
        return state.threshold

    def report_losses(self, threshold: float, request: SampleRequest, losses: Values) -> Mapping[str, float]:
        """Return lowest loss, 80th percentile, and the count and sum of squares of losses at or above the threshold.

        The reports have the noise of the options. With `as_released` the threshold itself does not count, and sum and
        number of all losses are reported, too.

        Args:
            threshold: the loss threshold that the client received, in nats.
            request: the information by which the client chose its samples.
            losses: last known loss of each of the client's samples, after its training, in nats, [n].
        """
        loss_list = request.losses if self.as_released else losses
        loss_list = loss_list if self.clip is None else np.minimum(loss_list, self.clip)
        high_losses = loss_list[loss_list > threshold if self.as_released else loss_list >= threshold]
        with np.errstate(invalid="ignore"):  # between two infinite losses, of a model that diverges
            high_loss = float(np.percentile(loss_list, HIGH_LOSS_PERCENTILE))
        report_values = (float(loss_list.min()), high_loss, float(len(high_losses)), float(high_losses @ high_losses))
        reports = dict(zip(NOISY_REPORT_NAMES, report_values, strict=True))
        if self.noise:
            loss_noises = request.rng("metadata").standard_normal(len(NOISY_REPORT_NAMES))
            for report_name, loss_noise in zip(NOISY_REPORT_NAMES, loss_noises, strict=True):
                reports[report_name] += self.noise * float(loss_noise)
            reports |= {report_name: max(0.0, reports[report_name]) for report_name in ("loss_count", "loss_squares")}
        if self.as_released:
            reports |= {"loss_sum": float(loss_list.sum()), "n_used": float(len(loss_list))}
        return reports

    def describe(self, state: State) -> Mapping[str, float]:
        """Return the threshold in `state` in nats, its ratio ltr, and the privacy loss rho, if any, by name.

        ltr is the position of the threshold between low and high loss. rho exists with noise on clipped losses.
        """
        metric_by_name = {"threshold": state.threshold, "ltr": state.pace.ltr}
        if self.noise and self.clip is not None:
            metric_by_name["rho"] = int(state.n_reports_by_client.max()) * (self.clip / self.noise) ** 2
        return metric_by_name

    def observe(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state that follows `state`: the controller's decision (Alg. 3), then the new threshold (Alg. 2).

        `outcome` has the reports that arrived.
        """
        signals, reports_per_client = outcome.signals, state.n_reports_by_client.copy()
        reports_per_client[outcome.clients if outcome.reporting_ids is None else outcome.reporting_ids] += 1
        if not len(outcome.clients):
            return replace(state, n_reports_by_client=reports_per_client)
        round_utility = pace_utility(signals["loss_sum"], signals["n_used"], outcome.announced_s)
        pace_state = self.control.observe(state.pace, round_utility)
        is_valid_report = np.isfinite(signals["loss_low"]) & np.isfinite(signals["loss_high"])
        low_losses, high_losses = signals["loss_low"][is_valid_report], signals["loss_high"][is_valid_report]
        lowest_loss = float(low_losses.min(initial=math.inf))
        high_loss_sum = float(high_losses.sum())
        n_high_losses = len(low_losses)
        if self.as_released or not n_high_losses:
            lowest_loss = min(lowest_loss, state.lowest_loss)
            high_loss_sum += state.high_loss_sum
            n_high_losses += state.n_high_losses
        new_threshold = (
            compute_loss_threshold(lowest_loss, high_loss_sum / n_high_losses, pace_state.ltr) if n_high_losses else 0.0
        )
        return State(pace_state, new_threshold, lowest_loss, high_loss_sum, n_high_losses, reports_per_client)


def compute_loss_threshold(lowest_loss: float, high_loss: float, ltr: float) -> float:
    """Return the loss threshold in nats, at least 0 (Alg. 2).

    Args:
        lowest_loss: lowest reported loss in nats; it is the threshold if noise has put it above `high_loss`.
        high_loss: mean of the reported 80th percentiles in nats.
        ltr: position of the threshold from `lowest_loss` (0) to `high_loss` (1); the threshold is 0 while it is 0.
    """
    return max(0.0, lowest_loss + max(high_loss - lowest_loss, 0.0) * ltr) if ltr > 0 else 0.0


def draw_around_threshold(
    is_above_threshold: np.ndarray, n_drawn: int, share_above_threshold: float, rng: np.random.Generator
) -> Ids:
    """Return `n_drawn` random sample positions, a given share of them above the loss threshold if there are enough.

    Args:
        is_above_threshold: whether each sample is above the threshold, bool [n].
        n_drawn: number of samples, at most n.
        share_above_threshold: share of the drawn samples that is above the threshold, rounded up.
        rng: the client's generator.
    """
    positions_above, positions_below = np.flatnonzero(is_above_threshold), np.flatnonzero(~is_above_threshold)
    n_drawn_below = min(len(positions_below), math.floor(n_drawn * (1 - share_above_threshold) + 1e-9))
    n_drawn_above = min(len(positions_above), n_drawn - n_drawn_below)
    n_drawn_below = min(len(positions_below), n_drawn - n_drawn_above)
    drawn_positions_above = rng.choice(positions_above, n_drawn_above, replace=False)
    return np.sort(np.concatenate([drawn_positions_above, rng.choice(positions_below, n_drawn_below, replace=False)]))
