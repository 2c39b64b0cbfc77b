"""PyramidFL: Oort's ranking; fast clients train more, and less important clients upload less (Li et al. 2022).

Li, Zeng, Zhang, Cao, "PyramidFL: A Fine-grained Client Selection Framework for Efficient Federated Learning", MobiCom
2022, DOI 10.1145/3495243.3517017. Implemented from the authors' code.

    S:  the m clients with the shortest expected duration among the overcommit x m that Oort's ranking chooses
    importance:  I_k = ||D_k|| |B_k| / 100 when k last trained, n_k before;  rank_k of S by I_k, 0 the largest
    upload:  each tensor of k's update is left out with probability rho_k = low + rank_k (high - low) / m
    duration:  c_k = seconds of k's whole job - rho_k seconds of its upload;  R = max c_k
    work:  M_k E units, M_k = 1 + min(10, beta floor((R - c_k) / seconds of a unit) / E)

E is the number of local epochs (client.epochs) or steps (client.steps) of the run. A tensor is averaged over the
clients that sent it (drop_agg=per_tensor), or counts as zero where it was left out (drop_agg=zeros, as in the code).

Departures from the paper:
- The text was not available. Everything follows the code, and what only the text describes is missing.
- The code takes the norm of D_k - w, an update minus a model. Here it is the norm of the update D_k.
- Zeros in the mean shrink the model, so that drop_agg=per_tensor is the default.
- |B_k| and the losses are Oort's. The code has a moving mean of batch losses.
- A unit is an epoch or a step, see above. The code counts mini-batches, although its options are called epochs.
- The code limits the work to 5 passes over a client's data, or to E units where that is more (passes=5). The limit is
  off by default: with epochs and E = 5 no client could train more.
- M_k E is rounded; the code truncates it. Durations are the expected ones of E units and a whole upload, as in the
  code.
- Clients of the larger cohort that are not trained count as not selected. The code records them as trained, with the
  mean utility and norm of the others. Neither charges for them.
- New clients are explored by speed from the first round on, and their number is rounded down. The code explores by data
  size and duration (explore=size) after a uniform first round, and rounds up.
- The selection's probabilities are those of the draw of the larger cohort.
- While other clients work (deadline=buffered), overcommit x m is rounded at random, with its exact mean. A client that
  fills a single place is compared with itself only: rho_k = low and M_k = 1.
- R is the duration of the slowest client of the cohort, whatever the deadline: a deadline that drops late clients may
  drop some that were given more work.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedcohort import ranges
from fedcohort.component import CLEAN_LABELS, Requirement
from fedcohort.selector.base import Selector, top
from fedcohort.selector.ranking import RankingOptions
from fedcohort.selector.ranking import State as RankingState
from fedcohort.types import Ids, Population, ProbeResult, RoundContext, RoundOutcome, Selection, Values

UNCHANGED_TRAINING_REQUIREMENT = Requirement(
    lambda facts: not facts.components.codec.hooks,
    "{option} leaves tensors out of finished updates, and {codec} changes local training: choose codec=none, "
    "codec=subsample or codec=quant, or set codec.mode=posthoc for codec=lowrank",
)
VARIABLE_WORK_REQUIREMENT = Requirement(
    lambda facts: not any("client.steps" in options for options in facts.config["requires"].values()),
    "{option} gives fast clients more local work, and {agg} needs the same number of steps at every client: choose "
    "another aggregator, or set selector.beta=0",
)
PARTIAL_WORK_REQUIREMENT = Requirement(
    lambda facts: facts.components.deadline.partial_work or not facts.components.deadline.announces,
    "{option} gives fast clients extra epochs, which {deadline} discards: set deadline.partial_work=true, or "
    "selector.beta=0",
)


MAX_EXTRA_WORK_FACTOR = 10.0  # in multiples of E
MAX_IMPORTANCE_FACTOR = 1e150  # the product of two such numbers does not overflow


@dataclass(frozen=True)
class State:
    """State of PyramidFL that is kept between rounds.

    Attributes:
        ranking_state: state of Oort's ranking; its durations are expected ones.
        importance: importance of each client's last update, its norm times the client's samples / 100, [n_clients]; the
            number of samples before the first. With `per_step` it is divided by the number of local steps.
    """

    ranking_state: RankingState
    importance: Values


@dataclass(frozen=True)
class PyramidFl(RankingOptions, Selector[State]):
    """PyramidFL, a client selector; `RankingOptions` explains the options that it shares with Oort.

    Attributes:
        overcommit: number of clients that the ranking chooses, as a multiple of the cohort that trains.
        low: probability that a tensor of the most important client's update is left out.
        high: limit of that probability for the least important client, at least `low`.
        beta: share of a fast client's idle time, until the slowest client finishes, that it trains on, in [0, 1].
        passes: limit of a client's work in passes over its data; None for no limit.
        per_step: whether the importance of an update is divided by the number of local steps.
        drop_agg: mean of a tensor that some clients left out: over the clients that sent it ("per_tensor"), or with
            zeros for the others ("zeros").
    """

    overcommit: float
    low: float
    high: float
    beta: float
    passes: int | None
    per_step: bool
    drop_agg: str

    backs_off: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ranges.number("overcommit", self.overcommit, "[1, inf)")
        ranges.number("low", self.low, "[0, 1)")
        ranges.number("high", self.high, "[0, 1)")
        if self.high < self.low:
            raise ranges.range_error("high", f"a number in [low, 1), with low={self.low:g}", self.high)
        ranges.number("beta", self.beta, "[0, 1]")
        ranges.integer("passes", self.passes, "[1, inf)", allow_null=True)
        ranges.flag("per_step", self.per_step)
        ranges.choice("drop_agg", self.drop_agg, "per_tensor", "zeros")
        super().__post_init__()

    @property
    def needs(self) -> frozenset[str]:
        signal_names = {"n_train", "expected_s", "expected_unit_s", "expected_up_s", "update_norm"}
        signal_names |= {"pass_units"} if self.passes is not None else set()
        signal_names |= {"steps"} if self.per_step else set()
        return (super().needs - {"duration"}) | signal_names

    @property
    def requirements(self) -> frozenset[Requirement]:
        requirements = {VARIABLE_WORK_REQUIREMENT} if self.beta > 0 else set()
        if self.high > 0:
            requirements |= {UNCHANGED_TRAINING_REQUIREMENT}
        return frozenset(requirements)

    @property
    def recommendations(self) -> frozenset[Requirement]:
        return frozenset({CLEAN_LABELS} | ({PARTIAL_WORK_REQUIREMENT} if self.beta > 0 else set()))

    def shortlist(self, cohort: int) -> int:
        return int(self.overcommit * cohort + 1e-9)

    def init(self, population: Population) -> State:
        ranking_state = replace(self.initial_state(population), seconds=population.signals["expected_s"].astype(float))
        return State(ranking_state, population.signals["n_train"].astype(np.float64))

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        rounding_draw = ctx.rng.random() if len(ctx.in_flight) else 1e-9
        shortlist_context = replace(ctx, cohort=int(self.overcommit * ctx.cohort + rounding_draw))
        oort_selection, ranking_state = self.select_by_score(state.ranking_state, shortlist_context)
        chosen_ids = top(-ctx.signals["expected_s"], oort_selection.clients, ctx.cohort, ctx.rng)
        drop_rate_by_client, work_factors = np.zeros(ctx.n_clients), np.ones(ctx.n_clients)
        drop_rate_by_client[chosen_ids] = update_drop_rates(
            state.importance[chosen_ids], self.low, self.high, ctx.cohort
        )
        job_seconds = predict_job_seconds(ctx, chosen_ids, drop_rate_by_client[chosen_ids])
        work_unit_s = ctx.signals["expected_unit_s"][chosen_ids]
        work_factors[chosen_ids] = local_work_factors(job_seconds, work_unit_s, ctx.units, self.beta)
        score_terms = {"importance": state.importance, "drop": drop_rate_by_client, "work": work_factors}
        selection = replace(
            oort_selection,
            clients=chosen_ids,
            score_terms={**oort_selection.score_terms, **score_terms},
            units=self._choose_local_units(ctx, work_factors),
            upload=1.0 - drop_rate_by_client,
            zero_fill=self.drop_agg == "zeros",
        )
        return selection, replace(state, ranking_state=ranking_state)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        clients, signals = outcome.clients, outcome.signals
        n_steps = np.maximum(np.nan_to_num(signals["steps"], nan=1.0), 1.0) if self.per_step else np.ones(len(clients))
        importance = state.importance.copy()
        importance[clients] = compute_importances(signals["update_norm"], signals["loss_count"], n_steps)
        oort_signals = {signal_name: signals[signal_name] for signal_name in ("loss_count", "loss_squares")}
        oort_signals["duration"] = state.ranking_state.seconds[clients]
        ranking_state = self.store_client_reports(state.ranking_state, replace(outcome, signals=oort_signals))
        return None, State(ranking_state, importance)

    def _choose_local_units(self, ctx: RoundContext, work_factors: Values) -> Ids:
        """Return each client's number of epochs or steps, int64 [n_clients]: its factor times the default, rounded.

        `work_factors` [n_clients] are the factors. No client does more than `passes` passes over its data, unless the
        default number is larger.
        """
        n_work_units = np.floor(work_factors * ctx.units + 0.5)
        if self.passes is not None:
            n_work_units = np.minimum(n_work_units, np.maximum(self.passes * ctx.signals["pass_units"], ctx.units))
        return np.asarray(np.maximum(n_work_units, 1.0).astype(np.int64))


def compute_importances(update_norms: Values, sample_counts: Values, local_steps: Values) -> Values:
    """Return each update's importance, its norm times samples / 100 / steps, [n]; 0 for an invalid report.

    A client of importance 0 uploads least.

    Args:
        update_norms: L2 norm of each update, [n].
        sample_counts: number of samples of the first local epoch, [n].
        local_steps: number of local steps, or ones, [n].
    """
    is_valid_input = np.isfinite(update_norms) & np.isfinite(sample_counts) & (update_norms >= 0) & (sample_counts >= 0)
    valid_norms, valid_sample_counts = (
        np.minimum(np.where(is_valid_input, x, 0.0), MAX_IMPORTANCE_FACTOR) for x in (update_norms, sample_counts)
    )
    return np.asarray(valid_norms * valid_sample_counts / 100.0 / local_steps)


def update_drop_rates(importance: Values, lowest_drop_rate: float, highest_drop_rate: float, cohort: int) -> Values:
    """Return the probability with which each client leaves a tensor out of its upload, [m].

    The probability grows with the number of selected clients that are more important.

    Args:
        importance: importance of each selected client, [m].
        lowest_drop_rate: probability of the most important client.
        highest_drop_rate: limit of the probability of the least important client.
        cohort: size of the cohort.
    """
    importance_rank = (importance[None, :] > importance[:, None]).sum(1)
    return np.asarray(lowest_drop_rate + importance_rank * (highest_drop_rate - lowest_drop_rate) / cohort)


def predict_job_seconds(ctx: RoundContext, chosen_ids: Ids, rho: Values) -> Values:
    """Return the expected seconds of each chosen client's job, if it leaves out a share of its upload, [m].

    Args:
        ctx: the round's context, with the signals of expected durations.
        chosen_ids: ids of the chosen clients, [m].
        rho: share of the upload that each leaves out, [m].
    """
    job_seconds, upload_s = ctx.signals["expected_s"][chosen_ids], ctx.signals["expected_up_s"][chosen_ids]
    return np.asarray(job_seconds - rho * upload_s)


def local_work_factors(job_s: Values, work_unit_s: Values, E: int, beta: float) -> Values:
    """Return the factor by which each client multiplies its local work instead of waiting for the slowest, [m].

    Args:
        job_s: expected seconds of each client's job, [m].
        work_unit_s: seconds of a unit of work (epoch or step) at each client, [m].
        E: default number of units of local work in a job.
        beta: share of a client's idle time that is used, in [0, 1].
    """
    idle_s = job_s.max(initial=0.0) - job_s
    work_units_while_idle = np.divide(idle_s, work_unit_s, out=np.zeros(len(job_s)), where=work_unit_s > 0)
    return np.asarray(1.0 + np.minimum(MAX_EXTRA_WORK_FACTOR, beta * np.floor(work_units_while_idle + 1e-9) / E))
