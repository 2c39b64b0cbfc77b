"""Active FL: clients are drawn by the loss of their data, and a share of the cohort uniformly (Goetz et al. 2019).

Goetz, Malik, Bui, Moon, Liu, Kumar, "Active Federated Learning", 2019, arXiv 1909.12641.

    value:  v_k = sqrt(n_k) l_k, l_k the mean loss of k in nats when it last trained
    C:  the available clients without the floor(alpha1 A) smallest values, A the number of available clients
    S:  floor((1 - alpha3) m) clients of C, drawn successively in proportion to exp(alpha2 v_k), and others uniformly

A value stays until its client trains again. sqrt(n_k) l_k is the sum of the losses over sqrt(n_k). If all samples have
the same loss, a client's value grows with the square root of its size.

The abstract and three third-party implementations were read, the full text was not. The defaults of alpha1, alpha2 and
alpha3 are those of the implementations.

Departures from the paper:
- The loss is the mean over the client's local steps (loss=train), a by-product of training. loss=first_epoch takes each
  sample's loss when it is first trained on. loss=start takes the loss of w_t, which one of the implementations
  evaluates before training, for one more forward pass.
- Two of the implementations divide the mean loss by sqrt(n_k), which prefers small clients: value=mean.
- Clients that never trained have the largest known value, so that they are explored. The implementations give them 0 or
  minus infinity.
- Clients with small values are excluded in this round only. One implementation excludes them until they are drawn
  uniformly, another one excludes the share 1 - alpha1.
- Both parts of the cohort are drawn without replacement and are disjoint, so that it has m clients.
- A loss that is not finite leaves the value as it was.
- While other clients work (deadline=buffered), selections have few places: (1 - alpha3) m is then rounded up with the
  probability of its fraction.
- A client that failed three times in a row is withheld for some rounds (`round/backoff.py`): it would otherwise keep
  the value with which it was selected.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, SAME_MODEL, Facts, Requirement
from fedcohort.selector.base import Selector, draw, top
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

UNIFORM_DRAW_MESSAGE = (
    "{option} draws floor((1 - alpha3) x cohort) clients by their values, which is none: every cohort is uniform, as "
    "with selector=random. Choose a larger cohort, or a smaller selector.alpha3"
)
SIGNALS_BY_LOSS_OPTION = {"train": {"train_loss"}, "first_epoch": {"loss_sum", "n_used"}, "start": {"loss"}}


@dataclass(frozen=True)
class State:
    """State of Active FL that is kept between rounds.

    Attributes:
        loss: mean loss of each client in nats when it last trained, NaN before it, [n_clients].
    """

    loss: Values


@dataclass(frozen=True)
class ActiveFl(Selector[State]):
    """Active FL, a client selector: clients are drawn by the loss of their data, some of them uniformly.

    Attributes:
        alpha1: share of the available clients that cannot be drawn by value: those with the lowest values.
        alpha2: factor of a client's value in the exponent of its draw weight, exp(alpha2 value).
        alpha3: share of the cohort that is drawn uniformly.
        loss: loss of a client: "train", the mean over its local steps, "first_epoch", the mean when samples are first
            trained on, or "start", the loss of the round's global model, which costs a query.
        value: a client's value: "sum" for sqrt(samples) times its mean loss, "mean" for its mean loss divided by
            sqrt(samples).
        tie: clients that are excluded first among equal values: "random", or the lowest ids with "id".
    """

    alpha1: float
    alpha2: float
    alpha3: float
    loss: str
    value: str
    tie: str

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("alpha1", self.alpha1, "[0, 1)")
        ranges.number("alpha2", self.alpha2, "[0, inf)")
        ranges.number("alpha3", self.alpha3, "[0, 1]")
        ranges.choice("loss", self.loss, *SIGNALS_BY_LOSS_OPTION)
        ranges.choice("value", self.value, "sum", "mean")
        ranges.choice("tie", self.tie, "random", "id")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"n_train"} | SIGNALS_BY_LOSS_OPTION[self.loss])

    @property
    def requirements(self) -> frozenset[Requirement]:
        return frozenset({SAME_MODEL} if self.loss == "start" else ())

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS, Requirement(self._draws_by_loss, UNIFORM_DRAW_MESSAGE)})

    def _draws_by_loss(self, facts: Facts) -> bool | None:
        return None if facts.cohort is None else self.alpha3 == 1 or self.count_drawn_by_value(facts.cohort) > 0

    def count_drawn_by_value(self, cohort: int, rounding_draw: float = 1e-9) -> int:
        """Return the number of clients that are drawn by their values, out of a cohort of `cohort` clients.

        `rounding_draw`, a uniform draw in [0, 1), is added before the number is rounded down: its mean is then exact.
        """
        return math.floor((1 - self.alpha3) * cohort + rounding_draw)

    def init(self, population: Population) -> State:
        return State(np.full(population.n_clients, np.nan))

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        """Return the query for the loss of the round's global model, if loss=start; () for other values.

        It is sent to the clients that `select` will choose. The choice is made in advance with a copy of the round's
        random generator. Clients answer during their training.
        """
        if self.loss != "start":
            return ()
        expected_cohort, _, _ = self._choose_clients(state, replace(ctx, rng=copy.deepcopy(ctx.rng)))
        return (Probe("loss", expected_cohort, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        clients, client_values, draw_probability = self._choose_clients(state, ctx)
        return Selection(clients, client_values, probability=draw_probability), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        if self.loss == "start":
            latest_losses = outcome.probes["loss"].dense(len(state.loss))[outcome.clients]
        elif self.loss == "train":
            latest_losses = outcome.signals["train_loss"]
        else:
            latest_losses = outcome.signals["loss_sum"] / np.maximum(outcome.signals["n_used"], 1.0)
        is_finite_loss = np.isfinite(latest_losses)
        mean_losses = state.loss.copy()
        mean_losses[outcome.clients[is_finite_loss]] = latest_losses[is_finite_loss]
        return None, State(mean_losses)

    def _choose_clients(self, state: State, ctx: RoundContext) -> tuple[Ids, Values, Values]:
        """Return the cohort's ids, and each client's value and probability of being drawn first, [n_clients] each."""
        available_ids = ctx.available
        sqrt_sample_counts = np.sqrt(np.maximum(ctx.signals["n_train"], 1))
        client_values = state.loss * sqrt_sample_counts if self.value == "sum" else state.loss / sqrt_sample_counts
        known_client_values = client_values[available_ids][~np.isnan(client_values[available_ids])]
        client_values[np.isnan(client_values)] = known_client_values.max() if len(known_client_values) else 0.0
        candidate_ids = available_ids
        if n_excluded_clients := math.floor(self.alpha1 * len(available_ids) + 1e-9):
            excluded_ids = top(-client_values, available_ids, n_excluded_clients, ctx.rng, self.tie)
            candidate_ids = np.setdiff1d(available_ids, excluded_ids, assume_unique=True)
        draw_weights, candidate_values = np.zeros(ctx.n_clients), client_values[candidate_ids]
        draw_weights[candidate_ids] = np.exp(self.alpha2 * (candidate_values - candidate_values.max(initial=-np.inf)))
        n_drawn_by_value = self.count_drawn_by_value(ctx.cohort, ctx.rng.random() if len(ctx.in_flight) else 1e-9)
        value_drawn_ids = draw(draw_weights, available_ids, n_drawn_by_value, ctx.rng)
        undrawn_ids = np.setdiff1d(available_ids, value_drawn_ids, assume_unique=True)
        uniform_drawn_ids = draw(np.ones(ctx.n_clients), undrawn_ids, ctx.cohort - n_drawn_by_value, ctx.rng)
        share_drawn_by_value = n_drawn_by_value / ctx.cohort
        draw_probability = share_drawn_by_value * draw_weights / max(float(draw_weights.sum()), 1.0)
        draw_probability[available_ids] += (1 - share_drawn_by_value) / max(len(available_ids), 1)
        return np.sort(np.append(value_drawn_ids, uniform_drawn_ids)), client_values, draw_probability
