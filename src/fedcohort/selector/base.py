"""The contract of a client selector, and the choices and draws that all selectors share.

A selector is a frozen dataclass of hyperparameters; everything that changes between rounds is an explicit State. It
reads arrays and the signals that it declares, never a model, a dataset or an aggregator. It scores clients; `top` and
`draw` choose them.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from fedcohort import ranges
from fedcohort.arrays import Ids, Values
from fedcohort.component import Component
from fedcohort.draw_log import end_draw, start_draw
from fedcohort.errors import renamed_names
from fedcohort.maths.order_statistics import nth_smallest
from fedcohort.types import AggregationOverride, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection

S = TypeVar("S")
NEW_NAMES_OF_FUNCTIONS = {  # by old names, for one release
    "answers": "find_answers",
    "successive": "draw_successively",
    "begins_with_all": "first_round_notice",
    "check_limit": "reject_large_population",
}
__getattr__ = renamed_names(__name__, NEW_NAMES_OF_FUNCTIONS)


class Selector(Component, Protocol[S]):
    """A client selector: it chooses the clients of each round.

    The server calls `plan` (queries on the model), `select`, and, after local training and before the aggregation,
    `observe`. A method implements `init` and `select`; everything else has a default.

    Client ids carry no information: relabelled clients must get relabelled scores. Where scores are random (Thompson
    sampling, epsilon-greedy), draw one vector over all clients, `ctx.rng.standard_normal(ctx.n_clients)`. A client's
    draw then does not depend on which other clients are available.

    Attributes:
        backs_off: whether the run withholds clients that failed repeatedly (`round/backoff.py`).
        may_choose_fewer: whether the method may choose fewer than `ctx.cohort` available clients, but at least one.
        needs: names of the signals (`fedcohort/signal/`) that the selector reads, whether static, queried or reported.
            A ClassVar, or a property where options decide, as a run is charged for each of these signals.
        advises: whether `observe` may return an AggregationOverride; all updates are then kept for the aggregation.
        weighs: whether its AggregationOverrides contain weights; otherwise they only exclude clients. Aggregators that
            use such weights only in part print a notice.
        absolute: whether the weights of its overrides are not normalised, which some aggregators reject.
        uncapped: whether the selector chooses all available clients in every round, whatever the cohort.
        robust_loss: the constants alpha, beta and A of FLASH's robust loss that the selector queries, or none.
    """

    backs_off: ClassVar[bool] = False

    @property
    def may_choose_fewer(self) -> bool:
        return False

    @property
    def needs(self) -> frozenset[str]:
        return frozenset()

    @property
    def advises(self) -> bool:
        return False

    @property
    def weighs(self) -> bool:
        return self.advises

    @property
    def absolute(self) -> bool:
        return False

    @property
    def uncapped(self) -> bool:
        return False

    @property
    def robust_loss(self) -> Mapping[str, float]:
        return {}

    def shortlist(self, cohort: int) -> int:
        """Return the number of available clients that the selector needs in order to choose `cohort` clients.

        Back-off (`round/backoff.py`) leaves at least as many available.
        """
        return cohort

    def memory_bytes(self, n_clients: int, n_params: int) -> float:
        """Return a lower bound of the memory of a round, in bytes; 0 if memory is linear in the number of clients.

        Args:
            n_clients: number of clients.
            n_params: number of trainable parameters.
        """
        return 0

    @abstractmethod
    def init(self, population: Population) -> S:
        """Return the selector's state before round 0, from the numbers and static signals of `population`."""

    def plan(self, state: S, ctx: RoundContext) -> Sequence[Probe]:
        """Return the queries about the round's global model, to clients of `ctx.ready`; () by default."""
        return ()

    @abstractmethod
    def select(self, state: S, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, S]:
        """Choose `ctx.cohort` distinct ids of `ctx.available`, or all available clients if there are fewer.

        A selector with `may_choose_fewer` may choose fewer, but at least one. With `ctx.is_refill` it was called
        before in this round, with the same answers: what changes once per round must not change again.

        Args:
            state: the state before this round's selection.
            ctx: what the server knows before the round, with the static signals and the random generator.
            probes: answers to the queries that clients answered before the selection, by signal name.

        Returns:
            The selection, and the state after it.
        """

    def observe(self, state: S, outcome: RoundOutcome) -> tuple[AggregationOverride | None, S]:
        """Return the aggregation override (None by default) and the state after the round `outcome`; draw nothing.

        `outcome.signals[name]` holds a number or a row for each client of `outcome.clients`, in their order. Values may
        be NaN or infinite, for example the loss of a client that diverged. Such a value must not affect what is known
        of other clients.

        The server does not call `observe` for a round without a cohort. A round without arrivals must change the state
        too, so that a run cannot stall on clients that never arrive: either count failures, or set `backs_off`.
        """
        return None, state

    def trace(self, state: S) -> Mapping[str, tuple[float, float]]:
        """Return (mean, standard deviation) of each of the state's estimates to plot, by name; {} if there are none."""
        return {}


@dataclass(frozen=True)
class Stateless:
    """The empty state of a selector that remembers nothing."""


class StatelessSelector(Selector[Stateless]):
    """A selector that remembers nothing between rounds."""

    def init(self, population: Population) -> Stateless:
        return Stateless()


def first_round_notice(selector_name: str) -> str:
    """Return the notice that the selector `selector_name` trains all ready clients in its first round."""
    return f"selector={selector_name} trains all ready clients in round 1, whatever the cohort"


def reject_large_population(max_clients: int, n_clients: int, limit_reason: str) -> None:
    """Raise `OptionError` if the limit `max_clients` is below `n_clients`; `limit_reason` says why there is a limit."""
    if max_clients < n_clients:
        allowed_text = f"an integer of at least {n_clients}, the number of clients, {limit_reason}"
        raise ranges.range_error("limit", allowed_text, max_clients)


def find_answers(probes: Mapping[str, ProbeResult], signal: str) -> ProbeResult:
    """Return the answers to the query of `signal` in `probes`, the answers by signal; empty without such a query."""
    return probes.get(signal, ProbeResult(np.empty(0, np.int64), np.empty(0)))


TIE_TOLERANCE = 1e-9


def replace_nan_scores(scores: Values) -> Values:
    """Return the scores, [n_clients], with NaN replaced by -inf, so that clients without a score rank last."""
    return np.where(np.isnan(scores), -np.inf, scores)


def top(scores: Values, available_ids: Ids, n_chosen: int, rng: np.random.Generator, tie_rule: str = "random") -> Ids:
    """Return the `n_chosen` available clients with the highest scores, sorted by id; all where fewer are available.

    Args:
        scores: score of each client, float64 [n_clients]. Two scores are tied when |a - b| <= 1e-9 max(1, |a|, |b|):
            dot products that are mathematically equal differ in the last bit, and argmax would then always prefer the
            same client.
        available_ids: sorted ids of the clients to choose from, [a].
        n_chosen: number of clients to choose.
        rng: random generator that breaks ties.
        tie_rule: "random" draws among the clients tied at the last place, "id" takes the lowest ids. Both draw one
            random number for each client.
    """
    draw_logger = start_draw(rng)
    tie_breakers = rng.random(len(scores))[available_ids]
    if n_chosen >= len(available_ids):
        return np.sort(end_draw(draw_logger, available_ids, np.inf, available_ids))
    client_scores = replace_nan_scores(scores)[available_ids]
    cutoff_score = np.partition(client_scores, len(client_scores) - n_chosen)[len(client_scores) - n_chosen]
    if np.isfinite(cutoff_score):
        tie_tolerance = TIE_TOLERANCE * np.maximum(1.0, np.maximum(np.abs(client_scores), abs(cutoff_score)))
        is_tied = np.isfinite(client_scores) & (np.abs(client_scores - cutoff_score) <= tie_tolerance)
    else:
        is_tied = client_scores == cutoff_score
    is_selected = (client_scores > cutoff_score) & ~is_tied
    n_remaining_places = n_chosen - int(is_selected.sum())
    tied_positions = np.flatnonzero(is_tied)
    if tie_rule == "random":
        tied_positions = tied_positions[np.argsort(tie_breakers[tied_positions], kind="stable")]
    chosen_positions = np.concatenate([np.flatnonzero(is_selected), tied_positions[:n_remaining_places]])
    if draw_logger:
        is_selected[chosen_positions] |= tie_rule == "id"
        draw_weights = np.where(is_selected, np.inf, is_tied & (tie_rule == "random"))
        end_draw(draw_logger, available_ids, draw_weights, available_ids[chosen_positions])
    return np.sort(available_ids[chosen_positions])


def draw(draw_weights: Values, available_ids: Ids, n_chosen: int, rng: np.random.Generator) -> Ids:
    """Draw `n_chosen` distinct ids of `available_ids` with `rng`, in proportion to `draw_weights`; return them sorted.

    `draw_weights`, [n_clients], must be finite: infinite and NaN weights count as zero (`draw_successively`).
    """
    return np.sort(draw_successively(draw_weights, available_ids, n_chosen, rng))


def draw_successively(draw_weights: Values, available_ids: Ids, n_chosen: int, rng: np.random.Generator) -> Ids:
    """Draw distinct available clients successively, in proportion to `draw_weights`; return their ids in this order.

    Exponential keys e_k / weight_k give exactly the successive draw without replacement (Efraimidis and Spirakis,
    "Weighted random sampling with a reservoir", Information Processing Letters, 2006). One vector is drawn in a round
    and indexed by client. Clients of weight zero are drawn, uniformly, only where too few others are available.

    Args:
        draw_weights: weight of each client, float64 [n_clients], not negative. Infinite and NaN weights count as zero,
            as attackers may report them. Clients that never trained need a finite weight, such as the largest known.
        available_ids: sorted ids of the clients to draw from, [a].
        n_chosen: number of clients to draw; all available ones if there are fewer.
        rng: random generator of the draw.
    """
    draw_logger = start_draw(rng)
    exponential_draws, client_weights = rng.standard_exponential(len(draw_weights)), draw_weights
    if len(available_ids) < len(draw_weights):
        exponential_draws, client_weights = exponential_draws[available_ids], client_weights[available_ids]
    has_positive_weight = np.isfinite(client_weights) & (client_weights > 0)
    draw_keys = np.full(len(exponential_draws), np.inf)
    np.divide(exponential_draws, client_weights, out=draw_keys, where=has_positive_weight)
    cutoff_key = nth_smallest(draw_keys, n_chosen) if 0 < n_chosen < len(draw_keys) else np.inf
    candidates = np.flatnonzero(draw_keys <= cutoff_key)  # keys above the cut need no order
    positions_by_key = candidates[np.lexsort((exponential_draws[candidates], draw_keys[candidates]))]
    logged_weights = client_weights if has_positive_weight.all() else np.where(has_positive_weight, client_weights, 0.0)
    return end_draw(draw_logger, available_ids, logged_weights, available_ids[positions_by_key[:n_chosen]])
