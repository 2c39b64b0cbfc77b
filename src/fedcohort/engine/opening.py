"""Steps 1 to 5 of a round (DESIGN section 3): who is ready, who is asked, who trains, and who will be in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from fedcohort.deadline.base import Closing, PaceContext, settle
from fedcohort.device.base import Work
from fedcohort.engine.asking import Asked, asked, verify
from fedcohort.engine.chance import uniform
from fedcohort.engine.hearing import Hearing
from fedcohort.engine.local import ClientTask
from fedcohort.engine.parts import Parts, Populations, ServerState, Settings
from fedcohort.engine.stopwatch import Stopwatch
from fedcohort.engine.store import ClientStore
from fedcohort.errors import FedcohortError, UndeclaredSignal
from fedcohort.federation import Federation
from fedcohort.flat import Layout
from fedcohort.hook import weigher
from fedcohort.ledger import NUMBER, Charge
from fedcohort.rng import Draws
from fedcohort.samples.base import SampleRequest
from fedcohort.signal.base import Computed, Lab, Measured, Probed, Reported, Static, find
from fedcohort.types import Ids, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class Opened:
    """A round before its local training.

    tasks: of those who will arrive, by id. cost: samples that each processes. weights: raw, for the aggregation.
    answers: to the selector's probes. concurrent: those of them that are delivered with the outcome.
    measured: the aggregator's own probes of those who will arrive. charge: the cost of the whole round.
    twin: whom chance would have selected (`engine/chance.py`).
    """

    round: int
    available: Ids
    selection: Selection
    selector_state: object
    tasks: Sequence[ClientTask]
    cost: Values
    weights: Values
    closing: Closing
    answers: Mapping[str, ProbeResult]
    concurrent: Mapping[str, ProbeResult]
    measured: Mapping[str, Values]
    charge: Charge
    twin: Ids


class Opener:
    """Plans rounds; flops: of one sample's forward pass."""

    def __init__(
        self,
        parts: Parts,
        settings: Settings,
        federation: Federation,
        layout: Layout,
        lab: Lab,
        flops: float,
        watch: Stopwatch,
    ) -> None:
        self.watch = watch
        self.parts, self.settings, self.federation = parts, settings, federation
        self.layout, self.lab, self.flops = layout, lab, flops
        client = parts.client
        self.units = client.epochs if client.steps is None else client.steps
        self.step_passes = 3.0 + (weighs.passes if (weighs := weigher(parts.hooks)) else 0.0)
        self.everybody = np.arange(federation.n_clients)
        self.hearing = Hearing(parts.attack, settings.seed, federation.n_clients)
        self.probed = {w: s for w in sorted(parts.agg.needs) if isinstance(s := find(w), Measured)}
        extra = sum(len(hook.uploads) for hook in parts.hooks)
        reports = parts.selector.needs | parts.agg.needs
        small = sum(s.bytes_up for w in reports if isinstance(s := find(w), Reported))
        counted = NUMBER * layout.n_buffers + 8 * sum(b.size for b in layout.counters)
        self.model_bytes = NUMBER * layout.n_params + counted
        self.down_bytes = self.model_bytes + NUMBER * layout.n_params * sum(len(h.downloads) for h in parts.hooks)
        self.beside_bytes = counted + NUMBER * layout.n_params * extra + small
        self.up_bytes = parts.codec.bytes_up(layout) + self.beside_bytes
        self.populations = Populations.over(federation, settings.cohort, self.timed())
        self.signals = self.populations.signals(parts.selector.needs, "the selector")
        facts = {w: s for w in reports if isinstance(s := find(w), Static)}
        self.registration = Charge(
            up_bytes=float(sum(s.bytes_up * self.populations.facts[s.fact].size for s in facts.values()))
        )

    def open(self, t: int, state: ServerState, store: ClientStore) -> Opened:
        draws = Draws(self.settings.seed, self.federation.n_clients, t)
        available = np.flatnonzero(self.parts.availability.ready(draws))
        ctx = RoundContext(
            round=t,
            cohort=self.settings.cohort,
            n_clients=self.federation.n_clients,
            available=available,
            signals=self.signals,
            rng=draws.generator("selector"),
            units=self.units,
        )
        probes = list(self.parts.selector.plan(state.selector, ctx)) if len(available) else []
        answers = {probe.signal: self._ask(probe, available, t) for probe in probes}
        blocking = {p.signal: answers[p.signal] for p in probes if not p.concurrent}
        concurrent = {p.signal: answers[p.signal] for p in probes if p.concurrent}
        selection, selector_state = self.parts.selector.select(state.selector, ctx, blocking)
        verify(selection, available, self.settings.cohort, self.federation.n_clients, self.parts.codec)
        wait_s = self._probe_s([p for p in probes if not p.concurrent], draws)
        beside_s = self._probe_s([p for p in probes if p.concurrent], draws)
        work = asked(selection, self.units, self.layout, self.parts.codec, self.beside_bytes, draws)
        rows, looked, closing = self._pace(t, work, state, draws)
        charge = self._charge(probes, answers, work, rows, closing) + Charge(client_flops=self.flops * looked)
        train_s = closing.train_s if len(selection.clients) else 0.0
        spent = Charge(virtual_s=wait_s + max(train_s, beside_s))
        tasks = [
            ClientTask(
                round=t,
                client=int(k),
                rows=rows[i],
                units=int(closing.units[i]),
                units_asked=int(work.units[i]),
                lr=self.parts.client.lr_at(t),
                duration=float(closing.finish[i]),
                stored=store.get(int(k)),
                plain=selection.plain,
                kept=work.kept[i],
            )
            for i, k in enumerate(selection.clients)
            if closing.arrived[i]
        ]
        arriving = selection.clients[closing.arrived]
        used = self._used(arriving, [task.rows for task in tasks])
        return Opened(
            round=t,
            available=available,
            selection=selection,
            selector_state=selector_state,
            tasks=tasks,
            cost=self._samples_seen(used, closing.units[closing.arrived]),
            weights=self._weights(selection, used, self.federation.n_train[arriving]),
            closing=closing,
            answers=answers,
            concurrent=concurrent,
            measured={w: self._asked(w, s, arriving) for w, s in self.probed.items()},
            charge=charge + spent,
            twin=uniform(available, len(selection.clients), draws),
        )

    def _ask(self, probe: Probe, available: Ids, t: int) -> ProbeResult:
        if probe.signal not in self.parts.selector.needs:
            raise UndeclaredSignal(f"the selector probes {probe.signal!r} without declaring it in `needs`")
        signal = find(probe.signal)
        if not isinstance(signal, Probed) or not np.isin(probe.clients, available).all():
            raise FedcohortError(f"the selector can't probe {probe.signal!r} of clients that are not available")
        with self.watch.stage("probe"):
            if isinstance(signal, Measured):
                values = signal.measure(self.lab, probe.clients, probe.options)
            else:
                values = signal.compute(self.lab, t, probe.clients, probe.options)
        return ProbeResult(probe.clients, self.hearing.told(probe.signal, probe.clients, values))

    def _asked(self, word: str, signal: Measured, clients: Ids) -> Values:
        """The aggregator's own probe."""
        with self.watch.stage("probe"):
            return self.hearing.told(word, clients, signal.measure(self.lab, clients, {}))

    def _weights(self, selection: Selection, used: Ids, owned: Ids) -> Values:
        return used.astype(np.float64) if selection.plain else self.parts.agg.weights(used, owned)

    def _used(self, clients: Ids, rows: Sequence[Ids | None]) -> Ids:
        n = self.federation.n_train[clients]
        return np.array([n[i] if r is None else len(r) for i, r in enumerate(rows)], dtype=np.int64)

    def _samples_seen(self, used: Ids, units: "Ids | int") -> Values:
        client = self.parts.client
        per_unit = used if client.steps is None else np.minimum(used, client.batch or 10**9)
        seen: Values = (per_unit * units).astype(np.float64)
        return seen

    def _work(self, used: Ids, inferred: Values, up: Values | None = None) -> Work:
        """A whole job of E epochs over n samples is n sample-times; a forward pass is a third of an epoch.

        A job that weighs its samples is as much longer as that takes forward passes.
        """
        client = self.parts.client
        reference = self.units if client.steps is None else 1
        load = self._samples_seen(used, 1) * (self.step_passes / 3.0) / reference
        ones = np.ones(len(used))
        return Work(
            load=load,
            infer_load=inferred / (3.0 * reference),
            units=self.units,
            bytes_down=self.down_bytes * ones,
            bytes_up=self.up_bytes * ones if up is None else up,
        )

    def timed(self) -> dict[str, Values]:
        """The facts of devices and jobs, each [n_clients] (`engine/parts.py`)."""
        n, client = self.federation.n_train, self.parts.client
        draws = Draws(self.settings.seed, self.federation.n_clients)
        timing = self.parts.device.expected(self.everybody, self._work(n, np.zeros(len(n))), draws)
        passes = np.ones(len(n)) if client.steps is None else np.ceil(n / (client.batch or np.maximum(n, 1)))
        return {
            "expected_s": timing.finish(self.units),
            "expected_unit_s": timing.unit,
            "expected_up_s": timing.up,
            "pass_units": passes,
        }

    def _samples_in(self, signal: Probed, clients: Ids, options: Mapping[str, Any] = MappingProxyType({})) -> Values:
        """Forward passes that the signal asks of each client, in samples."""
        offsets = (self.federation.train if signal.split == "train" else self.federation.val).offsets
        passes = signal.passes
        each = passes(options, self.federation.label_counts[clients]) if callable(passes) else passes
        samples: Values = np.diff(offsets)[clients] * each
        if isinstance(signal, Computed) and signal.jobs is not None:
            works = np.isin(clients, signal.jobs(options))
            samples = samples + 3 * works * self._samples_seen(self.federation.n_train[clients], self.units)
        return samples

    def _probe_s(self, probes: Sequence[Probe], draws: Draws) -> float:
        """A phase lasts until the slowest of those asked has run the forward passes that it was asked for."""
        inferred = np.zeros(self.federation.n_clients)
        for probe in probes:
            signal = find(probe.signal)
            if isinstance(signal, Probed):
                inferred[probe.clients] += self._samples_in(signal, probe.clients, probe.options)
        asked = np.flatnonzero(inferred)
        if not len(asked):
            return 0.0
        work = self._work(np.zeros_like(asked), inferred[asked])
        return float(self.parts.device.sample(asked, work, draws).probe().max())

    def _pace(self, t: int, asked: Asked, state: ServerState, draws: Draws) -> tuple[list[Ids | None], int, Closing]:
        """Announce a deadline, choose samples (and count those looked at), let the devices run, close the round."""
        parts, n, selected = self.parts, self.federation.n_train, asked.clients
        inferred = sum((self._samples_in(s, self.everybody) for s in self.probed.values()), np.zeros(len(n)))
        everybody = parts.device.expected(self.everybody, self._work(n, inferred), draws.once())
        expected = parts.device.expected(selected, self._work(n[selected], inferred[selected], asked.up), draws.once())
        context = PaceContext(t, selected, self.units, everybody, expected)
        announced = parts.deadline.announce(state.deadline, context)
        rows: list[Ids | None] = []
        looked = np.zeros(len(selected), dtype=np.int64)
        for i, k in enumerate(selected):
            request = SampleRequest(
                client=int(k),
                n=int(n[k]),
                deadline_s=announced,
                unit_s=float(expected.unit[i]),
                units=int(asked.units[i]),
                losses=lambda i=i, k=int(k): self._losses(i, k, looked),  # type: ignore[misc]
                rng=partial(draws.generator, "samples", int(k)),
            )
            chosen = parts.samples.choose(state.samples, request)
            rows.append(None if len(chosen) == n[k] else chosen)
        work = self._work(self._used(selected, rows), inferred[selected] + looked, asked.up)
        timing = parts.device.sample(selected, work, draws)
        close = parts.deadline.close(state.deadline, timing.finish(asked.units), announced) if len(selected) else 0.0
        return rows, int(looked.sum()), settle(timing, asked.units, close, parts.deadline.partial_work)

    def _losses(self, position: int, client: int, looked: Ids) -> Values:
        """Per-sample cross-entropy of w_t on T_k, [n_k]; the forward pass is charged in time and FLOPs."""
        looked[position] = self.federation.n_train[client]
        return self.lab.per_sample_losses(client)

    def _charge(
        self,
        probes: Sequence[Probe],
        results: Mapping[str, ProbeResult],
        asked: Asked,
        rows: Sequence[Ids | None],
        closing: Closing,
    ) -> Charge:
        """Each client gets w_t once, whatever it is asked; dropped clients have worked and uploaded for nothing."""
        chosen = asked.clients
        polled = np.unique(np.concatenate([probe.clients for probe in probes] or [np.empty(0, np.int64)]))
        extra = len(np.setdiff1d(polled, chosen)) * self.model_bytes
        jobs = [(p, s.jobs(p.options)) for p in probes if isinstance(s := find(p.signal), Computed) and s.jobs]
        extra += sum(len(p.clients) for p, _ in jobs) * self.model_bytes
        answers = sum(find(probe.signal).bytes_up * results[probe.signal].values.size for probe in probes)
        answers += sum(s.bytes_up for s in self.probed.values()) * len(chosen)
        answers += sum(len(workers) for _, workers in jobs) * self.model_bytes
        inferred = [self._samples_in(s, chosen) for s in self.probed.values()]
        inferred += [
            self._samples_in(s, p.clients, p.options) for p in probes if isinstance(s := find(p.signal), Probed)
        ]
        passes = sum(float(samples.sum()) for samples in inferred)
        done = np.where(closing.arrived, closing.units, asked.units)
        trained = float(self._samples_seen(self._used(chosen, rows), done).sum())
        return Charge(
            down_bytes=float(len(chosen) * self.down_bytes + extra),
            up_bytes=float(asked.up[closing.arrived].sum() + answers),
            probe_bytes=float(extra + answers),
            client_flops=self.flops * (passes + self.step_passes * trained),
        )
