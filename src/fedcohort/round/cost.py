"""What a round's work comes to: bytes of a message, samples of a job, forward passes of a probe, and who pays."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.availability.schedule import NANOSECOND
from fedcohort.contracts import array
from fedcohort.data.federation import Federation
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.device.base import Workload, check_jobs
from fedcohort.flat import Layout
from fedcohort.ledger import NUMBER, Charge
from fedcohort.rng import Draws
from fedcohort.round.clock import Clock, WallTime
from fedcohort.round.jobs import Jobs
from fedcohort.round.parts import Parts, Populations
from fedcohort.round.rates import QueryWork, Rates
from fedcohort.round.sampling import foresee
from fedcohort.round.workload import have_answered, list_heard, list_queried
from fedcohort.signal.base import Computed, Probed, Static, find
from fedcohort.training.passes import count_dealt, count_pieces
from fedcohort.types import Ids, Probe, ProbeResult, Values


class CostModel:
    """The costs of one run's model and methods.

    flops: of one sample's forward pass; merge_last: how passes are cut (`training/passes.py`).

    units: epochs or steps of a whole job. In a plain round (`Selection.plain`) the aggregator reads nothing, and only
    the codec's hooks train: such a round costs the same as with agg=fedavg.
    """

    def __init__(self, parts: Parts, federation: Federation, layout: Layout, flops: float, merge_last: bool) -> None:
        self.parts, self.federation, self.layout, self.flops = parts, federation, layout, flops
        self.merge_last = merge_last
        client = parts.client
        self.units = client.epochs if client.steps is None else client.steps
        beside = parts.samples.bytes_down + NUMBER * parts.tells_deadline
        self.usual = Rates.from_signals(parts.needs(), parts.agg.needs, parts.hooks, layout, beside)
        self.plain = Rates.from_signals(parts.needs(plain=True), (), parts.hooks_in(plain=True), layout, beside)
        self.bare = Rates.from_signals((), (), (), layout)  # of a probe, which takes w_t alone
        self.update_bytes = parts.codec.bytes_up(layout)

    def rates(self, plain: bool) -> Rates:
        """Return the rates of a round that is plain (`Selection.plain`), or of one that isn't."""
        return self.plain if plain else self.usual

    # --- work and time ---------------------------------------------------------------------------------------------
    def count_used(self, clients: Ids, rows: Sequence[Ids | None]) -> Ids:
        """Count the samples that each client draws mini-batches from, [len(clients)].

        rows: their positions, None for all.
        """
        n = self.federation.n_train[clients]
        return np.array([n[i] if r is None else len(r) for i, r in enumerate(rows)], dtype=np.int64)

    def count_seen(self, used: Ids, units: "Ids | int") -> Values:
        """Count the samples that go through training, each as often as it does, [len(used)]."""
        client = self.parts.client
        if client.steps is None:
            return np.asarray(used * units, dtype=np.float64)
        return count_dealt(used, client.batch, self.merge_last, units).astype(np.float64)

    def samples_in(self, signal: Probed, clients: Ids, options: Mapping[str, Any] = MappingProxyType({})) -> Values:
        """Return the forward passes that the signal asks of each client, in samples, [len(clients)]."""
        offsets = (self.federation.train if signal.split == "train" else self.federation.val).offsets
        passes = signal.passes
        each: Values | float = passes  # type: ignore[assignment]  # a number where it isn't called
        if callable(passes):
            each = passes(options, self.federation.label_counts[clients])
            array("the forward passes of a signal", each, (len(clients),), "if", low=0)
        samples: Values = np.diff(offsets)[clients] * each
        return samples

    def trained_for(self, signal: Probed, clients: Ids, options: Mapping[str, Any], draws: Draws) -> Values:
        """Return the training that the signal asks of each client, in samples' forward passes, [len(clients)].

        draws: of the round, for the samples that are trained on.
        """
        if not isinstance(signal, Computed) or signal.jobs is None:
            return np.zeros(len(clients))
        works, n = np.isin(clients, signal.jobs(options)), self.federation.n_train
        rows = [
            foresee(self.parts.samples, k, int(n[k]), draws) if trains else None
            for k, trains in zip(clients.tolist(), works.tolist(), strict=True)
        ]
        samples: Values = 3 * works * self.count_seen(self.count_used(clients, rows), self.units)
        return samples

    def count_inferred(self, clients: Ids, rates: Rates, heard: Sequence[Probe] = ()) -> Values:
        """Return the forward passes of a job before and after its training, in samples, [len(clients)].

        They are for the aggregator's probes before it trains, and for reports after. heard: the selector's probes of
        the same round, of the clients that answer them: a client answers a query once.
        """
        passes: Values = rates.passes_after * self.federation.n_train[clients]
        for word, signal in rates.probed.items():
            passes = passes + np.where(have_answered(word, clients, heard), 0.0, self.samples_in(signal, clients))
        return passes

    def work(
        self,
        used: Ids,
        inferred: Values,
        rates: Rates,
        up: Values | float,
        has_model: Bool[np.ndarray, "_n"] | bool = False,
        units: Ids | None = None,
    ) -> Workload:
        """Return the workload of a whole job, in sample-times: E epochs over n samples are n of them.

        A forward pass is a third of an epoch. Mini-batches are of more than one size where a pass's last one is short:
        a step is the mean of a job's.

        A job that weighs its samples is as much longer as that takes forward passes.

        up: bytes of the answers; has_model: whose w_t has come with a question of the same round; units: asked of
        each, None for those of a whole job.
        """
        asked = self.units if units is None else units
        reference = self.units if self.parts.client.steps is None else 1
        ones = np.ones(len(used))
        return Workload(
            load=self.count_seen(used, asked) / asked * (rates.step_passes / 3.0) / reference,
            infer_load=inferred / (3.0 * reference),
            units=self.units,
            bytes_down=(rates.down_bytes - self.bare.down_bytes * np.asarray(has_model)) * ones,
            bytes_up=up * ones,
            epochs=reference,
        )

    def device_facts(self, draws: Draws) -> dict[str, Values]:
        """Return what is known of devices and jobs before the first round, each [n_clients] (`round/parts.py`)."""
        n, client = self.federation.n_train, self.parts.client
        everybody = np.arange(self.federation.n_clients)
        up = self.update_bytes + self.usual.beside_bytes
        timing = self.parts.device.expect(everybody, self.work(n, np.zeros(len(n)), self.usual, up), draws)
        if self.parts.device.timed:
            check_jobs(timing.finish(self.units), n)
        steps = None if client.steps is None else count_pieces(n, client.batch, self.merge_last)
        return {
            "expected_s": timing.finish(self.units),
            "expected_unit_s": timing.unit,
            "expected_up_s": timing.up,
            "pass_units": np.ones(len(n)) if steps is None else steps.astype(np.float64),
        }

    def count_asked(self, probes: Sequence[Probe], draws: Draws) -> QueryWork:
        """Count the work that each client is asked for in the round of `draws`."""
        asked = QueryWork(*np.zeros((3, self.federation.n_clients)))
        for probe in probes:
            signal, clients = find(probe.signal), probe.clients
            if isinstance(signal, Probed):
                trained = self.trained_for(signal, clients, probe.options, draws)
                asked.trained[clients] += trained
                passes = asked.passes_after if trained.any() else asked.passes
                passes[clients] += self.samples_in(signal, clients, probe.options)
        return asked

    def poll(
        self, asked: QueryWork, draws: Draws, began: float, clock: Clock
    ) -> tuple[float, Bool[np.ndarray, "clients"]]:
        """Return the virtual seconds that a phase of probes lasts from the clock's second `began`, and who was gone.

        It lasts until the slowest of the queried clients would be done. A client that leaves before it is done gives no
        answer, and does not resume the query later. If some clients train for a signal, the others wait for their
        encoded updates, without buffers. Then all receive the model of these updates and run their forward passes.
        """
        up = np.where(asked.trained > 0, self.update_bytes, 0.0)
        first, gone = self._slowest(asked.passes + asked.trained, up, draws, clock.wall_time(began))
        second, gone_after = self._slowest(asked.passes_after, 0.0 * up, draws, clock.wall_time(began + first))
        return first + second, gone | gone_after

    def _slowest(
        self, samples: Values, up: Values, draws: Draws, wall_time: WallTime
    ) -> tuple[float, Bool[np.ndarray, "clients"]]:
        """Return the seconds that those with forward passes to run, in samples [n_clients], take to send `up`.

        And who leaves before.
        """
        polled, gone = np.flatnonzero(samples), np.zeros(len(samples), dtype=bool)
        if not len(polled):
            return 0.0, gone
        work = self.work(np.zeros_like(polled), samples[polled], self.bare, up[polled])
        seconds = self.parts.device.sample(polled, work, draws).finish(0)
        gone[polled] = wall_time(polled, seconds) > seconds + NANOSECOND
        return float(seconds.max()), gone

    # --- charges ---------------------------------------------------------------------------------------------------
    def registration(self, populations: Populations) -> Charge:
        """Return the charge of the signals that clients send when they register."""
        facts = {w: s for w in self.parts.needs() if isinstance(s := find(w), Static)}
        return Charge(up_bytes=float(sum(s.bytes_up * populations.facts[s.fact].size for s in facts.values())))

    def round(
        self,
        probes: Sequence[Probe],
        results: Mapping[str, ProbeResult],
        jobs: Jobs,
        closing: DeadlineOutcome,
        plain: bool,
        draws: Draws,
    ) -> Charge:
        """Return the cost of the round of `draws`: each client gets w_t once, whatever it is asked.

        A late client is charged for its full computation, and uploads nothing. An update that arrives and is left out
        has been uploaded. An update for a signal is encoded as any other. A client that left before its answers were
        done is charged for them as well.

        results: the answers that arrived.
        """
        chosen, rates, model = jobs.client, self.rates(plain), self.bare.down_bytes
        extra = len(np.setdiff1d(list_queried(probes), chosen)) * model
        trained_for = [(p, s.jobs(p.options)) for p in probes if isinstance(s := find(p.signal), Computed) and s.jobs]
        extra += sum(len(p.clients) for p, _ in trained_for) * model
        answers = sum(find(probe.signal).bytes_up * results[probe.signal].values.size for probe in probes)
        heard = list_heard(probes, results)
        answers += sum(s.bytes_up * int((~have_answered(w, chosen, heard)).sum()) for w, s in rates.probed.items())
        answers += (
            sum(np.isin(workers, results[p.signal].clients).sum() for p, workers in trained_for) * self.update_bytes
        )
        passes = float(self.count_inferred(chosen, rates, heard).sum() + self.count_asked(probes, draws).total.sum())
        done = np.where(closing.arrived, closing.units, jobs.asked)
        trained = float(self.count_seen(self.count_used(chosen, jobs.rows), done).sum())
        return Charge(
            down_bytes=float(len(chosen) * rates.down_bytes + extra),
            up_bytes=float(jobs.bytes_up[closing.arrived].sum() + answers),
            probe_bytes=float(extra + answers),
            client_flops=self.flops * (passes + rates.step_passes * trained),
        )
