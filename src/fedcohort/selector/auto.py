"""Selection by diagnosis: measure how the federation's clients differ, and act only where that pays.

Not from a paper. Random selection runs until two probes of `signal=class_loss` have been answered. From then on:

    1. noise:  if a group of clients has more wrong labels in both probes, cohorts are drawn from the pool of the others
    2. classes:  clients of the group join the pool for classes of which the pool has too little
    3. probation:  a share of all places stays with the excluded clients; if the gap falls, all rejoin the pool for good
    4. speed:  if the clock ends the run and speeds persist, the slowest clients leave the pool
    5. balance:  if random cohorts of the pool hold fewer classes than the pool, cohorts are balanced greedily
    6. otherwise cohorts are uniform, with the same draws as selector=random
    first probe:  at the start of round R = max(first, ceil(1.2 K / m)), the others in rounds 2R, 3R, ...
    acts on noise:  gap_2 >= gap and gap_2 >= persistence gap_1

The tests are in `fedcohort/diagnosis/`. Two probes are needed: clients of another domain show the same gap. Until
both agree, cohorts are not balanced: clients with noisy labels have even label counts, so that balance prefers them.
Clients answer during the round's training. The first probe goes to at most `sample` clients, those selected last.
Known failures: clients of another domain and other classes may be left out. Wrong labels that most clients share, or
that all have equally often, are not seen. Lies in `class_loss` are believed.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float64

from fedcohort import ranges
from fedcohort.diagnosis.class_balance import balance_cohort, count_cohort_classes
from fedcohort.diagnosis.excess_loss import ClassLosses
from fedcohort.diagnosis.label_noise import NoiseMonitor, choose_pool, estimate_noise, rounds_between_probes
from fedcohort.diagnosis.speeds import JobDurations, choose_fast_clients, estimate_speeds
from fedcohort.selector.base import Selector, draw, find_answers
from fedcohort.types import Ids, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Values

log = logging.getLogger("fedcohort")
MIN_POOL_SHARE = 0.2  # of all clients
MIN_SHARE_WITH_LABEL_COUNTS = 0.5  # of the pool, whose label counts are known, for balanced cohorts
RANGE_BY_INTEGER_OPTION = {"first": "[1, inf)", "probes": "[1, 1000]", "sample": "[2, inf)"}
RANGE_BY_NUMBER_OPTION = {"probation": "[0, 0.5]", "speed_bound": "[0, 1)", "speed_gain": "[1, inf)"}
RANGE_BY_NUMBER_OPTION |= dict.fromkeys(("gap", "persistence", "cover", "even"), "[0, 1]")


@dataclass(frozen=True)
class State:
    """State of the selector that is kept between rounds.

    Attributes:
        n_classes: number of classes.
        interval: rounds between two probes of the clients' losses by class.
        counts: samples by client and class as last reported, [n_clients, n_classes]; 0 before.
        rate: share of wrong labels of each client beyond that of the cleanest ones, [n_clients]; NaN if not known.
        n_selections, last_round: number of each client's selections, and round of the last or -1, [n_clients] each.
        in_pool, is_fast: whether the label noise, and the speed, of each client allow its selection, [n_clients] each.
        durations: sums of the logarithms of the seconds of each client's jobs so far.
        watch: evidence of label noise from the probes so far.
        is_undecided: whether a probe was answered after the last decision on class balance.
        is_balanced: whether cohorts are balanced over classes.
        needs_counts: whether cohorts should be balanced, but too few clients have reported their label counts.
        owed_places: fraction of a place that is still due to excluded clients from earlier rounds, in [0, 1).
    """

    n_classes: int
    interval: int
    counts: Float64[np.ndarray, "_k _c"]
    rate: Values
    n_selections: Ids
    last_round: Ids
    in_pool: Bool[np.ndarray, "_k"]
    is_fast: Bool[np.ndarray, "_k"]
    durations: JobDurations
    watch: NoiseMonitor = field(default_factory=NoiseMonitor)
    is_undecided: bool = False
    is_balanced: bool = False
    needs_counts: bool = False
    owed_places: float = 0.0


@dataclass(frozen=True)
class Auto(Selector[State]):
    """Selection by diagnosis, a client selector: it leaves out noisy or slow clients if two probes agree.

    Attributes:
        act: whether the diagnosis changes the selection; otherwise clients are probed, but selected at random.
        noise, speed: whether clients with more label noise, and slow clients, are left out.
        balance: whether cohorts are balanced over classes where random ones hold few classes.
        first: rounds before the first probe and between probes; more where they hold fewer than 1.2 jobs per client.
        probes: largest number of probes, which query clients for the losses of their samples by class.
        sample: about the number of clients that the first probe queries; all if there are fewer.
        gap: least difference in the rate of wrong labels between two groups of clients for which clients are left out.
        persistence: least ratio of this difference to that of the previous probe for which they are left out.
        cover: least ratio of a class's share among remaining clients to its share among all clients.
        probation: share of the cohort's places that goes to clients that are left out for label noise.
        even: cohorts are balanced if random ones have less than this share of the pool's effective number of classes.
        speed_bound: least share of the variance of speeds that persists (lower 95 % bound) to leave out slow clients.
        speed_gain: least factor by which rounds must become shorter, as predicted, for slow clients to be left out.
    """

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
        for option_name in ("act", "noise", "balance", "speed"):
            ranges.flag(option_name, getattr(self, option_name))
        for option_name, value_range in RANGE_BY_INTEGER_OPTION.items():
            ranges.integer(option_name, getattr(self, option_name), value_range)
        for option_name, value_range in RANGE_BY_NUMBER_OPTION.items():
            ranges.number(option_name, getattr(self, option_name), value_range)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"class_loss"} | ({"duration"} if self.speed else set()))

    def notices(self, selector_name: str) -> Sequence[str]:
        random_rounds_text = f"until it has measured twice, in round {2 * self.first} or later"
        return (f"selector={selector_name} selects at random {random_rounds_text}",)

    def init(self, population: Population) -> State:
        K, zero_by_client = population.n_clients, np.zeros(population.n_clients)
        return State(
            n_classes=population.n_classes,
            interval=rounds_between_probes(self.first, K, population.cohort),
            counts=np.zeros((K, population.n_classes)),
            rate=np.full(K, np.nan),
            n_selections=np.zeros(K, np.int64),
            last_round=np.full(K, -1),
            in_pool=np.ones(K, dtype=bool),
            is_fast=np.ones(K, dtype=bool),
            durations=JobDurations(np.zeros(K, np.int64), zero_by_client, zero_by_client),
        )

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        probe_number, interval_offset = divmod(ctx.round, state.interval)
        if interval_offset or not 1 <= probe_number <= self.probes or (state.watch.is_done and not state.needs_counts):
            return ()
        queried_ids = ctx.ready
        if probe_number == 1 and ctx.n_clients > self.sample:
            queried_ids = queried_ids[state.last_round[queried_ids] >= ctx.round - math.ceil(self.sample / ctx.cohort)]
        return (Probe("class_loss", queried_ids, {"n_classes": state.n_classes}, concurrent=True),)

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        if not self.act:
            return Selection(draw(np.ones(ctx.n_clients), ctx.available, ctx.cohort, ctx.rng)), state
        in_pool = state.in_pool & state.is_fast
        n_probation_places, n_other_places, owed_places = self._split_places(state, ctx)
        clients = draw(in_pool.astype(float), ctx.available, n_other_places, ctx.rng)
        state = self._decide_balancing(state, in_pool, ctx)
        pool_ids = ctx.available[in_pool[ctx.available]]
        if state.is_balanced and len(pool_ids) >= ctx.cohort:
            clients = balance_cohort(state.counts, state.n_selections, pool_ids, n_other_places, ctx.rng)
        if n_probation_places:  # a short pool may have left too few excluded clients: then others get these places
            unselected_ids, is_excluded_client = np.setdiff1d(ctx.available, clients), (~state.in_pool).astype(float)
            clients = np.union1d(clients, draw(is_excluded_client, unselected_ids, n_probation_places, ctx.rng))
        if not state.watch.is_acting:
            return Selection(clients), replace(state, owed_places=owed_places)
        selection = Selection(clients, -state.rate, {"excess_rate": state.rate, "in_pool": in_pool.astype(float)})
        return selection, replace(state, owed_places=owed_places)

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[None, State]:
        n_selections, last_round = state.n_selections.copy(), state.last_round.copy()
        n_selections[outcome.selection.clients] += 1
        last_round[outcome.selection.clients] = outcome.round
        state = replace(state, n_selections=n_selections, last_round=last_round)
        if self.speed:
            state = replace(state, durations=state.durations.with_jobs(outcome.clients, outcome.signals["duration"]))
        if len((class_losses := find_answers(outcome.probes, "class_loss")).clients):
            state = self._update_noise_rates(state, class_losses, outcome)
        if self.speed and outcome.round and outcome.round % state.interval == 0:
            state = self._find_fast_clients(state, outcome)
        return None, state

    def _split_places(self, state: State, ctx: RoundContext) -> tuple[int, int, float]:
        """Return how many places excluded and other clients get in round `ctx`, and the fraction left for later."""
        if not state.watch.is_acting:
            return 0, ctx.cohort, 0.0
        owed_places = state.owed_places + self.probation * ctx.cohort
        n_places = min(int(owed_places), int((~state.in_pool[ctx.available]).sum()), ctx.cohort)
        return n_places, ctx.cohort - n_places, owed_places % 1

    def _decide_balancing(self, state: State, in_pool: Bool[np.ndarray, "_k"], ctx: RoundContext) -> State:
        """Return the state after deciding, once per probe, whether cohorts of the clients `in_pool` are balanced."""
        if not (self.balance and state.is_undecided):
            return state
        has_label_counts = in_pool & (state.counts.sum(1) > 0)
        if state.watch.is_suspected or not has_label_counts.any():
            return replace(state, is_undecided=False, is_balanced=False)
        n_cohort_classes, n_pool_classes = count_cohort_classes(state.counts, has_label_counts, ctx.cohort, ctx.rng)
        is_cohort_uneven = n_cohort_classes < self.even * n_pool_classes
        needs_counts = is_cohort_uneven and bool(has_label_counts.sum() < MIN_SHARE_WITH_LABEL_COUNTS * in_pool.sum())
        is_balanced = is_cohort_uneven and not needs_counts
        if is_balanced != state.is_balanced:
            log.info(
                "round %d: random cohorts hold %.1f of the pool's %.1f effective classes: cohorts are %s from now on",
                *(ctx.round + 1, n_cohort_classes, n_pool_classes, "balanced" if is_balanced else "uniform"),
            )
        return replace(state, is_undecided=False, is_balanced=is_balanced, needs_counts=needs_counts)

    def _update_noise_rates(self, state: State, class_losses: ProbeResult, outcome: RoundOutcome) -> State:
        """Return the state with rates of wrong labels and the pool, by the probe `class_losses` in round `outcome`."""
        is_valid_row = np.isfinite(class_losses.values).all(1) & (class_losses.values >= 0).all(1)
        clients, losses = class_losses.clients[is_valid_row], ClassLosses.from_rows(class_losses.values[is_valid_row])
        if not losses.n_samples.any():
            return state
        round, counts = outcome.round, state.counts.copy()
        counts[clients] = losses.class_counts
        state = replace(state, counts=counts, is_undecided=True)
        if not self.noise:
            return replace(state, watch=NoiseMonitor(is_done=True))
        if not (noise_estimate := estimate_noise(losses)).is_valid:
            log_text = "round %d: too early to measure label noise (wrong labels raise the loss by only %.2f nats)"
            log.info(log_text, round + 1, noise_estimate.fit.nats_per_wrong_label)
            return replace(state, watch=state.watch.with_invalid_probe())
        watch = state.watch.with_probe(noise_estimate.gap, self.gap, self.persistence)
        rate, in_pool = state.rate.copy(), state.in_pool.copy()
        rate[clients] = noise_estimate.fit.noise_rate
        if watch.is_released:
            in_pool[:] = True
        elif not watch.is_acting:
            in_pool[clients] = True
        elif noise_estimate.gap >= self.gap:  # a smaller gap that persists leaves the pool unchanged
            min_pool_share = max(MIN_POOL_SHARE, (len(outcome.selection.clients) - 1e-6) / len(clients))
            in_pool[clients] = choose_pool(noise_estimate, losses.class_counts, min_pool_share, self.cover)
        log.info("round %d: two groups' noise rates differ by %.2f: %s", round + 1, watch.last_gap, watch.decision_text)
        return replace(state, watch=watch, rate=rate, in_pool=in_pool)

    def _find_fast_clients(self, state: State, outcome: RoundOutcome) -> State:
        """Return the state after the round `outcome`; if speeds persist, `is_fast` is False for the slowest clients."""
        has_label_counts = state.in_pool & (state.counts.sum(1) > 0)
        speeds = estimate_speeds(state.durations, state.counts.sum(1))
        if not speeds.low > self.speed_bound or not has_label_counts.any():
            return replace(state, is_fast=np.ones_like(state.is_fast))
        cohort = len(outcome.selection.clients)
        is_fast, _ = choose_fast_clients(speeds, state.counts, has_label_counts, cohort, self.cover, self.speed_gain)
        n_slow_clients, n_pool_clients = (has_label_counts & ~is_fast).sum(), has_label_counts.sum()
        log_text = "round %d: %.0f %% of the variance of speeds persists: %d of %d clients are left out for their speed"
        log.info(log_text, outcome.round + 1, 100 * speeds.rho, n_slow_clients, n_pool_clients)
        return replace(state, is_fast=is_fast | ~has_label_counts)
