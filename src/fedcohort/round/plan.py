"""Steps 1 to 5 of a round: who is ready, who is asked, who trains, and who will be in time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool

from fedcohort.data.federation import Federation
from fedcohort.deadline.base import DeadlineOutcome, PaceContext, settle
from fedcohort.device.base import Timing
from fedcohort.flat import Layout
from fedcohort.host.stopwatch import Stopwatch
from fedcohort.ledger import Charge
from fedcohort.rng import Draws
from fedcohort.round.backoff import withhold
from fedcohort.round.chance import uniform
from fedcohort.round.clock import Clock, Stretch
from fedcohort.round.cost import CostModel
from fedcohort.round.guard import prefixed
from fedcohort.round.hearing import ClientClaims, Hearing
from fedcohort.round.parts import Parts, Populations, ServerState
from fedcohort.round.rates import Rates
from fedcohort.round.sampling import Chosen, SampleSelection
from fedcohort.round.settings import Settings
from fedcohort.round.store import ClientStore
from fedcohort.round.workload import AskedWork, ask_work, list_heard, list_queried, verify
from fedcohort.signal.base import Lab
from fedcohort.training.client_task import ClientTask
from fedcohort.training.upload import Kept
from fedcohort.types import Ids, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class PlannedRound:
    """A round before its local training.

    Attributes:
        arriving: sorted ids of those who will arrive.
        kept: the tensors that each of them sends, None for all.
        task: makes the job of the i-th of them; a rank makes those of its own share.
        cost: samples that each processes.
        weights: raw, for the aggregation.
        looked: the losses of the samples of those who looked at all of them, by id, whether or not they will arrive.
        queried: sorted ids of the clients that selector or aggregator queried, whether or not they answered.
        answers: to the selector's probes, of those who weren't gone before they were done.
        concurrent: those of them that are delivered with the outcome.
        measured: the aggregator's own probes of those who will arrive, none in a plain round.
        charge: the cost of the whole round.
        waited_s: virtual seconds of it in which nobody was ready, before the selection.
        twin: whom chance would have selected (`round/chance.py`).
    """

    round: int
    available: Ids
    selection: Selection
    selector_state: object
    arriving: Ids
    kept: Sequence[Kept | None]
    task: Callable[[int], ClientTask]
    cost: Values
    weights: Values
    closing: DeadlineOutcome
    looked: Mapping[int, Values]
    queried: Ids
    answers: Mapping[str, ProbeResult]
    concurrent: Mapping[str, ProbeResult]
    measured: Mapping[str, Values]
    charge: Charge
    waited_s: float
    twin: Ids


class RoundPlanner:
    """Plans rounds: asks, has the selector choose, paces, and has all of it charged."""

    def __init__(
        self,
        parts: Parts,
        settings: Settings,
        federation: Federation,
        layout: Layout,
        lab: Lab,
        cost_model: CostModel,
        stopwatch: Stopwatch,
    ) -> None:
        self.stopwatch = stopwatch
        self.parts, self.settings, self.federation = parts, settings, federation
        self.layout, self.lab, self.cost_model = layout, lab, cost_model
        self.whole_jobs: dict[int, Timing] = {}  # by the id of `Rates`, of which the bill keeps two
        self.claims = ClientClaims(parts.attack, settings.seed, federation.n_clients)
        draws = Draws(settings.seed, federation.n_clients)
        self.clock = Clock(parts.availability, draws, settings.window_s)
        self.asked = parts.deadline.ask(settings.cohort)
        self.populations = Populations.over(federation, settings.cohort, cost_model.device_facts(draws))
        self.hearing = Hearing(parts.selector.needs, lab, self.claims, stopwatch)

    def open(self, t: int, state: ServerState, store: ClientStore) -> PlannedRound:
        draws = Draws(self.settings.seed, self.federation.n_clients, t)
        available, waited_s = self.clock.gather(draws, state.spent.virtual_s)
        ctx = RoundContext(
            round=t,
            cohort=self.asked,
            n_clients=self.federation.n_clients,
            available=available,
            signals=self.populations.signals(self.hearing.needs, "the selector", self.hearing.measure_own()),
            rng=draws.generator("selector"),
            units=self.cost_model.units,
        )
        if self.parts.selector.backs_off:
            ctx = withhold(state.failures, ctx, self.parts.selector.shortlist(self.asked))
        probes = list(self.parts.selector.plan(state.selector, ctx)) if len(available) else []
        with prefixed(self.parts.selector):
            told = self.hearing.ask_all(probes, available, t)
        before_s = waited_s + self.clock.window_s
        began = state.spent.virtual_s + before_s
        before, beside = [p for p in probes if not p.concurrent], [p for p in probes if p.concurrent]
        asked_before, asked_beside = (self.cost_model.count_asked(each, draws) for each in (before, beside))
        wait_s, gone = self.cost_model.poll(asked_before, draws, began, self.clock)
        beside_s, gone_beside = self.cost_model.poll(asked_beside, draws, began + wait_s, self.clock)
        answers = {p.signal: told[p.signal].without(gone_beside if p.concurrent else gone) for p in probes}
        blocking = {p.signal: answers[p.signal] for p in before}
        selection, selector_state = self.parts.selector.select(state.selector, ctx, blocking)
        with prefixed(self.parts.selector):
            verify(selection, ctx.available, self.asked, self.federation.n_clients, self.parts.codec)
        rates = self.cost_model.rates(selection.plain)
        work = ask_work(selection, self.cost_model.units, self.layout, self.parts.codec, rates.beside_bytes, draws)
        has_model = asked_before.total[selection.clients] > 0
        stretch = self.clock.since(began + wait_s)
        pace = self._pace(t, work, rates, list_heard(probes, answers), has_model, state, store, draws, stretch)
        rows, closing = pace.chosen.rows, pace.closing
        charge = self.cost_model.round(probes, answers, work, rows, closing, selection.plain, draws)
        train_s = closing.train_s if len(selection.clients) else 0.0
        virtual_s = before_s + wait_s + max(train_s, beside_s)
        flops = self.cost_model.flops * int(self.federation.n_train[pace.looking].sum())
        spent = Charge(client_flops=flops, virtual_s=virtual_s)
        lr, here = self.parts.client.lr_at(t), np.flatnonzero(closing.arrived).tolist()
        arriving = selection.clients[here]
        used = self.cost_model.count_used(arriving, [rows[i] for i in here])

        def task(place: int) -> ClientTask:
            i, k = here[place], int(arriving[place])
            return ClientTask(
                round=t,
                client=k,
                rows=rows[i],
                units=int(closing.units[i]),
                units_asked=int(work.units[i]),
                lr=lr,
                duration=float(closing.finish[i]),
                stored=store.get(k),
                plain=selection.plain,
                kept=work.kept[i],
                loss_after=rates.passes_after > 0,
                remember=pace.chosen.remember[i],
            )

        return PlannedRound(
            round=t,
            available=available,
            selection=selection,
            selector_state=selector_state,
            arriving=arriving,
            kept=[work.kept[i] for i in here],
            task=task,
            cost=self.cost_model.count_seen(used, closing.units[closing.arrived]),
            weights=self._weights(selection, used, self.federation.n_train[arriving]),
            closing=closing,
            looked=pace.looked,
            queried=list_queried(probes, selection.clients if rates.probed else selection.clients[:0]),
            answers=answers,
            concurrent={p.signal: answers[p.signal] for p in beside},
            measured={w: self.hearing.ask_measured(w, s, arriving) for w, s in rates.probed.items()},
            charge=charge + spent,
            waited_s=waited_s,
            twin=uniform(available, len(selection.clients), draws),
        )

    def _weights(self, selection: Selection, used: Ids, owned: Ids) -> Values:
        return used.astype(np.float64) if selection.plain else self.parts.agg.weights(used, owned)

    def _pace(
        self,
        t: int,
        asked: AskedWork,
        rates: Rates,
        heard: Sequence[Probe],
        has_model: Bool[np.ndarray, "_n"],
        state: ServerState,
        store: ClientStore,
        draws: Draws,
        stretch: Stretch,
    ) -> "Pace":
        """Announce a deadline, have samples chosen, let the devices run, close the round.

        heard: the selector's probes, of the clients that answer them.
        has_model: which selected clients have w_t from a blocking probe, [cohort].
        """
        parts, cost_model, n, selected = self.parts, self.cost_model, self.federation.n_train, asked.clients
        samples = SampleSelection(parts.samples, self.federation, parts.client.batch, store, self.lab)
        looking = samples.find_looking(state.samples, selected)
        inferred = cost_model.count_inferred(selected, rates, heard)
        inferred = inferred + np.where(np.isin(selected, looking), n[selected], 0)
        work = cost_model.work(n[selected], inferred, rates, asked.up, has_model, asked.units)
        expected = parts.device.expect(selected, work, draws.once())
        context = PaceContext(t, selected, cost_model.units, self._whole_job(rates), expected)
        announced = parts.deadline.announce(state.deadline, context)
        with self.stopwatch.stage("probe"):
            losses = samples.look(looking)
        chosen = samples.choose(state.samples, asked, losses, announced, expected, draws)
        used = cost_model.count_used(selected, chosen.rows)
        work = cost_model.work(used, inferred, rates, asked.up, has_model, asked.units)
        timing = parts.device.sample(selected, work, draws)
        wall = partial(stretch, selected)
        finish = wall(timing.finish(asked.units))
        close = parts.deadline.close(state.deadline, finish, announced) if len(selected) else 0.0
        closing = settle(timing, asked.units, close, parts.deadline.partial_work, announced, wall)
        in_time = set(selected[wall(timing.probe()) <= close].tolist())
        looked = {k: values for k, values in losses.items() if k in in_time}
        return Pace(chosen, looking, looked, closing)

    def _whole_job(self, rates: Rates) -> Timing:
        """Return the expected times of a whole job, for everybody.

        No round changes them: they are worked out once for plain rounds and once for the others.
        """
        if id(rates) not in self.whole_jobs:
            cost_model = self.cost_model
            sent = cost_model.update_bytes + rates.beside_bytes
            inferred = cost_model.count_inferred(self.clock.everybody, rates)
            work = cost_model.work(self.federation.n_train, inferred, rates, sent)
            draws = Draws(self.settings.seed, self.federation.n_clients)
            self.whole_jobs[id(rates)] = self.parts.device.expect(self.clock.everybody, work, draws)
        return self.whole_jobs[id(rates)]


@dataclass(frozen=True)
class Pace:
    """How a cohort's work fits into the round.

    Attributes:
        chosen: what they train on.
        looking: sorted ids of those who look at all of their samples first.
        looked: their losses, of those who are done with that before the round closes.
        closing: who arrives.
    """

    chosen: Chosen
    looking: Ids
    looked: Mapping[int, Values]
    closing: DeadlineOutcome
