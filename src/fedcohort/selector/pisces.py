"""Pisces: clients with high losses whose updates arrive with little staleness (Jiang et al. 2022).

Jiang, Wang, Li, Li, "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022, arXiv
2206.09264.

    utility:  U_k = |B_k| sqrt(1/|B_k| sum over B_k of loss^2) (1 + mean of k's last W stalenesses)^-beta
    n places:  Binomial(n, eps) clients that never trained, uniformly, and the others with the largest U_k
    after a selection:  eps <- max(decay eps, eps_min)
    bar_outliers, for an update of model version v:
        records:  the latest loss sqrt(1/|B_j| sum over B_j of loss^2) of each client j, of versions after v - 5
        with m records or more:  k loses one of its 5 credits if DBSCAN(eps .5, min_samples m // 2) finds its loss noise
        0 credits:  k is barred. If all available clients are, all clients get 5 credits again, with a warning

B_k are the samples of k's first local epoch when it last trained, and m is the number of clients that work at the same
time. It selects whenever a place is free, which deadline=buffered provides; agg=fedbuff agg.weighting=samples is close
to its aggregation. The rule rests on the abstract and on the authors' code in Plato; the full text was not read.

Departures from the paper:
- A client without a past staleness has 0.
- The bound of staleness, 10 in the code, is off by default; deadline.wait_for_stale=10 sets it. The server then waits
  for updates that would be older, as in the code, which lets them be one step older.
- With `bar_outliers`, off by default as in the code, a report costs at most one credit, when the server steps. The code
  takes a credit from all outliers among the records at each arrival, so that one report can cost all credits.
- Only the latest loss of a client is kept. Records for an old version therefore include losses of later versions.
- Losses per sample are compared, so that a false number of samples, which raises U_k as well, is not found.
- The code takes a moving average of batch losses instead of the mean square of the samples' losses.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, LATE_UPDATES, Requirement
from fedcohort.selector.base import Selector, draw, top
from fedcohort.selector.ranking_terms import client_utilities
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

log = logging.getLogger("fedcohort")


@dataclass(frozen=True)
class State:
    """State of Pisces that is kept between rounds.

    Attributes:
        utility: utility of each client, from the losses of its last job, before the staleness factor, [n_clients]; NaN
            before its first job, or if its report is invalid.
        staleness: staleness in server steps of each client's last updates, the latest last, [n_clients, window]; NaN
            for missing ones.
        n_trained: number of updates of each client, [n_clients].
        eps: current share of places for clients that never trained.
        loss: root mean square of the losses of each client's last job in nats, [n_clients]; NaN where `utility` is.
        version: round of the model with which each client did this job, [n_clients].
        credits: outliers that each client may still report before it is barred, [n_clients].
        min_records: number of losses from which outliers are sought, the number of clients that work at the same time.
    """

    utility: Values
    staleness: Float64[np.ndarray, "_k _w"]
    n_trained: Values
    eps: float
    loss: Values
    version: Ids
    credits: Ids
    min_records: int


@dataclass(frozen=True)
class Pisces(Selector[State]):
    """Pisces, a client selector for asynchronous training: it ranks clients by loss and staleness.

    Attributes:
        beta: exponent of the staleness discount (1 + mean staleness)^-beta.
        window: number of past updates whose staleness counts.
        eps: share of places for clients that never trained, at the first selection.
        eps_decay: factor of `eps` per selection.
        eps_min: lower bound of `eps`.
        bar_outliers: whether clients are barred that repeatedly report outliers as losses.
        outlier_credits: reports of outliers after which a client is barred.
        outlier_distance: largest distance of losses that are neighbours, in nats; DBSCAN's eps.
        outlier_versions: number of versions of the model whose losses are compared.
    """

    beta: float
    window: int
    eps: float
    eps_decay: float
    eps_min: float
    bar_outliers: bool
    outlier_credits: int
    outlier_distance: float
    outlier_versions: int

    backs_off: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"loss_count", "loss_squares"})
    recommendations: ClassVar[frozenset[Requirement]] = frozenset({CLEAN_LABELS, LATE_UPDATES})

    def __post_init__(self) -> None:
        ranges.number("beta", self.beta, "[0, inf)")
        ranges.integer("window", self.window, "[1, 1000]")
        ranges.number("eps", self.eps, "[0, 1]")
        ranges.number("eps_decay", self.eps_decay, "(0, 1]")
        ranges.number("eps_min", self.eps_min, "[0, 1]")
        ranges.flag("bar_outliers", self.bar_outliers)
        ranges.integer("outlier_credits", self.outlier_credits, "[1, inf)")
        ranges.number("outlier_distance", self.outlier_distance, "(0, inf)")
        ranges.integer("outlier_versions", self.outlier_versions, "[1, inf)")

    @property
    def may_choose_fewer(self) -> bool:
        return self.bar_outliers

    def init(self, population: Population) -> State:
        K = population.n_clients
        unknown_values, zero_versions = np.full(K, np.nan), np.zeros(K, np.int64)
        return State(
            utility=unknown_values,
            staleness=np.full((K, self.window), np.nan),
            n_trained=np.zeros(K),
            eps=self.eps,
            loss=unknown_values,
            version=zero_versions,
            credits=np.full(K, self.outlier_credits),
            min_records=population.cohort,
        )

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        staleness_discount = self.staleness_discounts(state)
        if len(ctx.available) and not state.credits[ctx.available].any():
            log.warning(
                "round %d: all available clients are barred, as %d of their losses were outliers: all clients may be "
                "selected again. If this repeats, raise selector.outlier_distance (now %g) or selector.outlier_credits",
                *(ctx.round + 1, self.outlier_credits, self.outlier_distance),
            )
            state = replace(state, credits=np.full(ctx.n_clients, self.outlier_credits))
        scores, available_ids = state.utility * staleness_discount, ctx.available[state.credits[ctx.available] > 0]
        has_trained = state.n_trained[available_ids] > 0
        n_chosen = min(ctx.cohort, len(available_ids))
        n_explored = min(int(ctx.rng.binomial(n_chosen, state.eps)), int((~has_trained).sum()))
        n_explored = max(n_explored, n_chosen - int(has_trained.sum()))
        explored_ids = draw(np.ones(ctx.n_clients), available_ids[~has_trained], n_explored, ctx.rng)
        n_exploited = n_chosen - n_explored
        trained_ids = available_ids[has_trained]
        exploited_ids = top(scores, trained_ids, n_exploited, ctx.rng) if n_exploited else trained_ids[:0]
        clients = np.sort(np.concatenate([explored_ids, exploited_ids]))
        next_state = replace(state, eps=max(self.eps_decay * state.eps, self.eps_min))
        return Selection(clients, scores, {"utility": state.utility, "staleness": staleness_discount}), next_state

    def staleness_discounts(self, state: State) -> Values:
        """Return (1 + mean staleness)^-beta of each client in `state`, [n_clients]."""
        n_known_updates = np.maximum((~np.isnan(state.staleness)).sum(1), 1)
        return np.asarray((1.0 + np.nansum(state.staleness, axis=1) / n_known_updates) ** -self.beta, np.float64)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        clients, signals = outcome.clients, outcome.signals
        utility, staleness, n_trained, loss, model_version = (
            v.copy() for v in (state.utility, state.staleness, state.n_trained, state.loss, state.version)
        )
        utility[clients] = client_utilities(signals["loss_count"], signals["loss_squares"])
        staleness[clients] = np.roll(staleness[clients], -1, axis=1)
        staleness[clients, -1] = outcome.staleness
        n_trained[clients] += 1
        loss[clients] = utility[clients] / np.where(signals["loss_count"] > 0, signals["loss_count"], np.nan)
        model_version[clients] = outcome.round - outcome.staleness
        next_state = replace(
            state, utility=utility, staleness=staleness, n_trained=n_trained, loss=loss, version=model_version
        )
        return None, self.deduct_outlier_credits(next_state, clients) if self.bar_outliers else next_state

    def deduct_outlier_credits(self, state: State, clients: Ids) -> State:
        """Return `state` with a credit less for each of `clients`, which have just reported, whose loss is an outlier.

        The losses of one version are compared with those of the versions before it, as losses fall during training.
        """
        credits = state.credits.copy()
        for version in np.unique(state.version[clients]):
            is_recent = np.isfinite(state.loss) & (state.version > version - self.outlier_versions)
            recent_ids = np.flatnonzero(is_recent)
            if len(recent_ids) < state.min_records:
                continue
            min_neighbours = max(state.min_records // 2, 1)
            outlier_ids = recent_ids[mark_loss_outliers(state.loss[recent_ids], self.outlier_distance, min_neighbours)]
            charged_ids = np.intersect1d(outlier_ids, clients[state.version[clients] == version])
            credits[charged_ids] = np.maximum(credits[charged_ids] - 1, 0)
        return replace(state, credits=credits)


def mark_loss_outliers(losses: Values, max_neighbour_distance: float, min_neighbours: int) -> Bool[np.ndarray, "_n"]:
    """Return whether each loss is noise by DBSCAN, bool [n].

    Args:
        losses: finite losses in nats, [n].
        max_neighbour_distance: largest distance of neighbours in nats.
        min_neighbours: neighbours of a loss, itself included, that make it the core of a cluster. A loss that is
            neither a core nor the neighbour of one is noise.
    """
    from sklearn.cluster import DBSCAN

    return np.asarray(DBSCAN(eps=max_neighbour_distance, min_samples=min_neighbours).fit(losses[:, None]).labels_ == -1)
