"""Selection by diagnosis: measure how the federation's clients differ, and act only where that pays.

Not from a paper. Random selection runs until two probes of `signal=class_loss` have been answered. From then on:

    1. noise:  if a group of clients has more wrong labels in both probes, cohorts come from the pool of the others
    2. classes:  clients of the group join the pool for classes of which the pool has too little
    3. probation:  a share of all places stays with the excluded clients; if the gap falls, all are released for good
    4. speed:  if the clock ends the run and speeds persist, the slowest clients leave the pool
    5. balance:  if random cohorts of the pool hold fewer classes than the pool, cohorts are balanced greedily
    6. otherwise cohorts are uniform, with the same draws as selector=random

    first probe:  at the start of round R = max(first, ceil(1.2 K / m)), the others in rounds 2R, 3R, ...
    acts on noise:  gap_2 >= gap and gap_2 >= persistence gap_1

The test, the pool, the greedy cohorts and the speeds are in `fedcohort/diagnosis/`, which `fedcohort diagnose` reads,
too. A probe counts only if the model tells right labels from wrong ones (`NoiseEstimate.is_valid`). Two looks are
needed because clients of another domain show the same gap: a domain is learnt under random selection, and its gap
falls, while that of wrong labels stays. Until the two looks agree cohorts are not balanced, as clients with noisy
labels have even label counts and a balanced cohort prefers them. If the first valid gap is below half of `gap`, no
further probe is sent. The probes are answered during the round's training. In federations of more than `sample`
clients the first probe goes to the most recently selected clients, a random sample, and the others are asked only if
something shows.

Known failures: clients of another domain that also hold other classes may be excluded; if most clients have the same
wrong labels, these are learnt; equal noise at all clients is not seen; a client that lies in `class_loss` is believed.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.diagnosis.class_balance import balanced_cohort, effective_classes_of_cohorts
from fedcohort.diagnosis.excess_loss import ClassLosses
from fedcohort.diagnosis.label_noise import choose_pool, estimate_noise
from fedcohort.diagnosis.speeds import Durations, estimate_speeds, fast_clients
from fedcohort.selector.base import Selector, draw, find_answers
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

log = logging.getLogger("fedcohort")

JOBS_BEFORE_PROBE = 1.2  # of a client on average, before the first probe
MIN_POOL_SHARE = 0.2  # of all clients


@dataclass(frozen=True)
class State:
    """State of the selector that is kept between rounds.

    Attributes:
        n_classes: number of labels, C.
        interval: rounds between probes, R.
        counts: samples by client and class as last reported, [K, C]; 0 before.
        rate, rate_error: excess rate of wrong labels of each client and its standard error, [K]; NaN if not known.
        uses: number of times that each client was selected, [K].
        last_round: round in which each client was last selected, [K]; -1 before.
        in_pool: the clients that cohorts are drawn from, as far as label noise decides, [K].
        is_fast: the clients that are not left out for their speed, [K].
        durations: seconds of jobs so far.
        n_looks: number of probes that count.
        last_gap: gap of the last probe that counted; NaN before.
        largest_gap: largest gap since clients were excluded; 0 before.
        is_acting: whether clients are excluded for label noise.
        is_released: whether excluded clients were released for good.
        is_suspected: whether a gap was seen, or a probe did not count, and no client is excluded.
        is_done: whether no further probe is sent.
        is_undecided: whether a probe was answered after the last decision on balance.
        is_balanced: whether cohorts are balanced.
        owed: places owed to excluded clients, in [0, 1).
    """

    n_classes: int
    interval: int
    counts: Float64[np.ndarray, "_k _c"]
    rate: Values
    rate_error: Values
    uses: Ids
    last_round: Ids
    in_pool: Bool[np.ndarray, "_k"]
    is_fast: Bool[np.ndarray, "_k"]
    durations: Durations
    n_looks: int = 0
    last_gap: float = float("nan")
    largest_gap: float = 0.0
    is_acting: bool = False
    is_released: bool = False
    is_suspected: bool = False
    is_done: bool = False
    is_undecided: bool = False
    is_balanced: bool = False
    owed: float = 0.0


@dataclass(frozen=True)
class Auto(Selector[State]):
    """Selection by diagnosis, a client selector; configs/selector/auto.yaml explains its options."""

    act: bool
    noise: bool
    balance: bool
    speed: bool
    first: int
    probes: int
    sample: int
    gap: float
    persistence: float
    cover: float
    probation: float
    even: float
    speed_bound: float
    speed_gain: float

    def __post_init__(self) -> None:
        for flag in ("act", "noise", "balance", "speed"):
            ranges.flag(flag, getattr(self, flag))
        ranges.integer("first", self.first, "[1, inf)")
        ranges.integer("probes", self.probes, "[1, 1000]")
        ranges.integer("sample", self.sample, "[2, inf)")
        ranges.number("gap", self.gap, "[0, 1]")
        ranges.number("persistence", self.persistence, "[0, 1]")
        ranges.number("cover", self.cover, "[0, 1]")
        ranges.number("probation", self.probation, "[0, 0.5]")
        ranges.number("even", self.even, "[0, 1]")
        ranges.number("speed_bound", self.speed_bound, "[0, 1)")
        ranges.number("speed_gain", self.speed_gain, "[1, inf)")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"class_loss"} | ({"duration"} if self.speed else set()))

    def notices(self, choice: str) -> Sequence[str]:
        return (f"selector={choice} is random selection until its second probe, in round {2 * self.first} or later",)

    def init(self, population: Population) -> State:
        K, zeros = population.n_clients, np.zeros(population.n_clients)
        return State(
            n_classes=population.n_classes,
            interval=max(self.first, math.ceil(JOBS_BEFORE_PROBE * K / population.cohort)),
            counts=np.zeros((K, population.n_classes)),
            rate=np.full(K, np.nan),
            rate_error=np.full(K, np.nan),
            uses=np.zeros(K, np.int64),
            last_round=np.full(K, -1),
            in_pool=np.ones(K, dtype=bool),
            is_fast=np.ones(K, dtype=bool),
            durations=Durations(np.zeros(K, np.int64), zeros, zeros),
        )

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        turn, remainder = divmod(ctx.round, state.interval)
        if remainder or not 1 <= turn <= self.probes or state.is_done:
            return ()
        queried_ids = ctx.ready
        if turn == 1 and ctx.n_clients > self.sample:
            recent = state.last_round[queried_ids] >= ctx.round - math.ceil(self.sample / ctx.cohort)
            queried_ids = queried_ids[recent]
        return (Probe("class_loss", queried_ids, {"n_classes": state.n_classes}, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if not self.act:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng)), state
        pool = state.in_pool & state.is_fast
        n_probation, owed = self._places_on_probation(state, ctx)
        clients = draw(pool.astype(float), ctx.available, ctx.cohort - n_probation, ctx.rng)
        state = self._decide_balance(state, pool, ctx)
        candidates = ctx.available[pool[ctx.available]]
        if state.is_balanced and len(candidates) >= ctx.cohort:
            size = ctx.cohort - n_probation
            clients = balanced_cohort(state.counts, state.uses, candidates, size, ctx.rng)
        if n_probation:
            excluded_ids = ctx.available[~state.in_pool[ctx.available]]
            excluded_ids = np.setdiff1d(excluded_ids, clients)
            clients = np.union1d(clients, draw(np.ones(ctx.n_clients), excluded_ids, n_probation, ctx.rng))
        if not state.is_acting:
            return Selection(clients), replace(state, owed=owed)
        terms = {"excess_rate": state.rate, "rate_error": state.rate_error, "in_pool": pool.astype(float)}
        return Selection(clients, -state.rate, terms), replace(state, owed=owed)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        uses, last_round = state.uses.copy(), state.last_round.copy()
        uses[outcome.selection.clients] += 1
        last_round[outcome.selection.clients] = outcome.round
        state = replace(state, uses=uses, last_round=last_round)
        if self.speed:
            durations = state.durations.after(outcome.clients, outcome.signals["duration"])
            state = replace(state, durations=durations)
        answers = find_answers(outcome.probes, "class_loss")
        if len(answers.clients):
            state = self._learn(state, answers, outcome.round)
        if self.speed and outcome.round and outcome.round % state.interval == 0:
            state = self._compare_speeds(state, outcome)
        return None, state

    def _places_on_probation(self, state: State, ctx: RoundContext) -> tuple[int, float]:
        """Return how many places of this round go to excluded clients, and the part of a place that is owed then."""
        if not state.is_acting:
            return 0, 0.0
        owed = state.owed + self.probation * ctx.cohort
        n_available = int((~state.in_pool[ctx.available]).sum())
        n_places = min(int(owed), n_available, ctx.cohort)
        return n_places, owed - int(owed)

    def _decide_balance(self, state: State, pool: Bool[np.ndarray, "_k"], ctx: RoundContext) -> State:
        """Return the state with the decision whether cohorts are balanced, taken once after each probe."""
        if not (self.balance and state.is_undecided):
            return state
        is_known = pool & (state.counts.sum(1) > 0)
        if state.is_suspected or not is_known.any():
            return replace(state, is_undecided=False, is_balanced=False)
        of_cohorts, of_pool = effective_classes_of_cohorts(state.counts, is_known, ctx.cohort, ctx.rng)
        is_balanced = of_cohorts < self.even * of_pool
        if is_balanced != state.is_balanced:
            log.info(
                "round %d: random cohorts hold %.1f effective classes of %.1f: cohorts are %s from now on",
                *(ctx.round + 1, of_cohorts, of_pool, "balanced" if is_balanced else "uniform"),
            )
        return replace(state, is_undecided=False, is_balanced=is_balanced)

    def _learn(self, state: State, answers: ProbeResult, round: int) -> State:
        """Return the state after the answers to a probe: rates, gap, and the pool if the noise persists."""
        is_usable = np.isfinite(answers.values).all(1) & (answers.values >= 0).all(1)
        clients = answers.clients[is_usable]
        losses = ClassLosses.from_rows(answers.values[is_usable])
        if not losses.samples.any():
            return state
        counts = state.counts.copy()
        counts[clients] = losses.counts
        state = replace(state, counts=counts, is_undecided=True)
        if not self.noise:
            return replace(state, is_done=True)
        estimate = estimate_noise(losses)
        if not estimate.is_valid:
            log.info("round %d: too early to measure label noise (D = %.2f nats)", round + 1, estimate.fit.scale)
            return state if state.is_acting else replace(state, is_suspected=True)
        rate, rate_error = state.rate.copy(), state.rate_error.copy()
        rate[clients], rate_error[clients] = estimate.fit.rate, estimate.fit.rate_error
        is_first, previous_gap, gap = state.n_looks == 0, state.last_gap, estimate.gap
        state = replace(state, rate=rate, rate_error=rate_error, n_looks=state.n_looks + 1, last_gap=gap)
        if state.is_acting:
            is_released = gap < self.persistence * state.largest_gap
            state = replace(state, largest_gap=max(gap, state.largest_gap), is_released=is_released)
        else:
            persists = not is_first and gap >= self.gap and gap >= self.persistence * previous_gap
            state = replace(state, is_acting=persists, is_suspected=gap >= self.gap and not persists)
            state = replace(state, is_done=is_first and gap < self.gap / 2, largest_gap=gap if persists else 0.0)
        in_pool = state.in_pool.copy()
        in_pool[clients] = True
        if state.is_released:
            in_pool[:] = True
            state = replace(state, is_acting=False, is_done=True)
        elif state.is_acting and gap >= self.gap:
            smallest = min(max(math.ceil(MIN_POOL_SHARE * len(clients)), 1), len(clients))
            in_pool[clients] = choose_pool(estimate, losses.counts, smallest, self.cover)
        self._report(round, gap, state, in_pool)
        return replace(state, in_pool=in_pool)

    def _compare_speeds(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state with the clients that are fast enough, if speeds persist."""
        is_known = state.in_pool & (state.counts.sum(1) > 0)
        speeds = estimate_speeds(state.durations, state.counts.sum(1))
        if not speeds.low > self.speed_bound or not is_known.any():
            return replace(state, is_fast=np.ones_like(state.is_fast))
        cohort = len(outcome.selection.clients)
        is_fast, gain = fast_clients(speeds, state.counts, is_known, cohort, self.cover, self.speed_gain)
        log.info(
            "round %d: %.0f %% of the variance of speeds persists: %d of %d clients stay in the pool, and rounds take "
            "1/%.2f of the time",
            *(outcome.round + 1, 100 * speeds.rho, int(is_fast.sum()), int(is_known.sum()), gain),
        )
        return replace(state, is_fast=is_fast | ~is_known)

    def _report(self, round: int, gap: float, state: State, in_pool: Bool[np.ndarray, "_k"]) -> None:
        """Log what a probe showed, and what follows from it."""
        if state.is_acting:
            verb = "are" if self.act else "would be"
            consequence = f"{int((~in_pool).sum())} of {len(in_pool)} clients {verb} left out, but for probation"
        elif state.is_released:
            consequence = "the gap fell, so that the excluded clients are released"
        elif state.is_suspected:
            consequence = "a further probe shows whether it persists"
        else:
            consequence = "no clients are left out"
        log.info("round %d: gap of %.2f in the rate of wrong labels: %s", round + 1, gap, consequence)
