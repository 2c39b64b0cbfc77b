"""The costs of a round: bytes of messages, samples of jobs, forward passes of queries, and the charges for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from fedcohort.contracts import check_array
from fedcohort.data.federation import Federation
from fedcohort.deadline.base import DeadlineOutcome
from fedcohort.device.base import Workload, check_job_durations
from fedcohort.flat import Layout
from fedcohort.ledger import BYTES_PER_NUMBER, Charge
from fedcohort.rng import Draws
from fedcohort.round.components import Components
from fedcohort.round.jobs import Jobs
from fedcohort.round.populations import Populations
from fedcohort.round.rates import JobCosts, QueryPasses
from fedcohort.round.sampling import predict_chosen_samples
from fedcohort.round.workload import (
    drop_unanswered_clients,
    list_queried_clients,
    mark_answering_clients,
    mark_trained_clients,
)
from fedcohort.signal.base import NO_OPTIONS, Computed, ModelQuery, Static, find_signal
from fedcohort.training.passes import count_batches, count_sample_uses
from fedcohort.types import Ids, Probe, ProbeResult, Values


class CostModel:
    """Computes the bytes, forward passes (in samples) and virtual seconds that the rounds of a run cost.

    A selector can have a round trained as FedAvg does (`Selection.plain`). The aggregator then reads no signal and only
    the codec's hooks are active, so that the round costs the same as with agg=fedavg.

    Attributes:
        pass_flops: FLOPs of one sample's forward pass.
        merge_last_batch: whether a last mini-batch of one sample joins the one before it (`training/passes.py`).
        work_units: epochs or steps of a whole job.
        usual_job_costs: costs of a client's job with the run's aggregator.
        plain_job_costs: costs of a client's job in a round that is trained as FedAvg does.
        query_costs: costs of a query, for which a client receives only the global model.
        update_bytes: bytes of an encoded update.
    """

    def __init__(
        self, components: Components, federation: Federation, layout: Layout, pass_flops: float, merge_last_batch: bool
    ) -> None:
        self.components, self.federation, self.layout, self.pass_flops = components, federation, layout, pass_flops
        self.merge_last_batch = merge_last_batch
        client_options = components.client
        self.work_units = client_options.epochs if client_options.steps is None else client_options.steps
        extra_down_bytes = components.samples.bytes_down + BYTES_PER_NUMBER * components.is_deadline_announced
        needed_signals, agg_signals, hooks = components.needed_signals(), components.agg.needs, components.hooks
        self.usual_job_costs = JobCosts.from_signals(needed_signals, agg_signals, hooks, layout, extra_down_bytes)
        needed_signals, hooks = components.needed_signals(True), components.select_client_hooks(is_fedavg=True)
        self.plain_job_costs = JobCosts.from_signals(needed_signals, (), hooks, layout, extra_down_bytes)
        self.query_costs = JobCosts.from_signals((), (), (), layout)
        self.update_bytes = components.codec.bytes_up(layout)

    def select_job_costs(self, is_fedavg: bool) -> JobCosts:
        """Return the costs of a client's job; `is_fedavg`: whether it is trained as FedAvg (`Selection.plain`)."""
        return self.plain_job_costs if is_fedavg else self.usual_job_costs

    def count_samples(self, clients: Ids, sample_rows: Sequence[Ids | None]) -> Ids:
        """Return how many samples each of `clients` trains on, [n]: those at `sample_rows`, or all for None."""
        n_train = self.federation.n_train[clients]
        return np.array([n_train[i] if r is None else len(r) for i, r in enumerate(sample_rows)], dtype=np.int64)

    def count_sample_uses(self, n_samples: Ids, work_units: "Ids | int") -> Values:
        """Return the number of samples in all mini-batches of a job, with repetitions, float64 [len(n_samples)].

        Args:
            n_samples: samples that each client trains on.
            work_units: epochs or steps of each client or of all.
        """
        client = self.components.client
        if client.steps is None:
            return np.asarray(n_samples * work_units, dtype=np.float64)
        return count_sample_uses(n_samples, client.batch, self.merge_last_batch, work_units).astype(np.float64)

    def count_query_passes(self, signal: ModelQuery, clients: Ids, options: Mapping[str, Any] = NO_OPTIONS) -> Values:
        """Return the cost of a query of `signal` with `options` for each of `clients`, in forward passes, [n]."""
        sample_offsets = (self.federation.train if signal.split == "train" else self.federation.val).offsets
        passes_per_sample: Values | float = signal.passes  # type: ignore[assignment]  # a number if it isn't callable
        if callable(signal.passes):
            passes_per_sample = signal.passes(options, self.federation.label_counts[clients])
            check_array("the forward passes of a signal", passes_per_sample, (len(clients),), "if", min_value=0)
        return np.asarray(np.diff(sample_offsets)[clients] * passes_per_sample)

    def sum_training_passes(self, signal: ModelQuery, clients: Ids, options: Mapping[str, Any], draws: Draws) -> Values:
        """Return the cost, in forward passes, of the training that a signal requires of each client, [len(clients)].

        Args:
            signal: the signal.
            clients: ids of the queried clients.
            options: options of the query, by name.
            draws: random numbers of the round.
        """
        if not isinstance(signal, Computed) or not (signal.jobs or signal.trains):
            return np.zeros(len(clients))
        is_training, n = np.isin(clients, signal.jobs(options) if signal.jobs else clients), self.federation.n_train
        sample_rows = [
            predict_chosen_samples(self.components.samples, k, int(n[k]), draws) if is_trained else None
            for k, is_trained in zip(clients.tolist(), is_training.tolist(), strict=True)
        ]
        n_sample_uses = self.count_sample_uses(self.count_samples(clients, sample_rows), self.work_units)
        return np.asarray(3 * is_training * n_sample_uses)

    def count_forward_passes(self, clients: Ids, job_costs: JobCosts, answered_probes: Sequence[Probe] = ()) -> Values:
        """Return the forward passes of a job before and after its training, [len(clients)], for queries and reports.

        Args:
            clients: ids of the clients.
            job_costs: costs of a client's job in the round.
            answered_probes: the selector's queries, each with the clients that answered. The aggregator's queries of
                these clients for the same signal cost nothing.
        """
        n_forward_passes: Values = job_costs.report_passes * self.federation.n_train[clients]
        for k, signal in job_costs.queried_signals.items():
            n_forward_passes = n_forward_passes + np.where(
                mark_answering_clients(k, clients, answered_probes), 0.0, self.count_query_passes(signal, clients)
            )
        return n_forward_passes

    def make_workload(
        self,
        n_samples: Ids,
        forward_passes: Values,
        job_costs: JobCosts,
        up_bytes: Values | float,
        has_received_model: Bool[np.ndarray, "_n"] | bool = False,
        work_units: Ids | None = None,
    ) -> Workload:
        """Return the workload of jobs. Its loads count samples: a whole job, all epochs over n samples, has the load n.

        A forward pass over a sample takes a third of its training in a step; training takes longer in a job that weighs
        samples. Each step takes the mean time of the job's steps, of which the last may be shorter.

        Args:
            n_samples: samples that each client trains on, [n].
            forward_passes: forward passes before and after the training, [n].
            job_costs: costs of a client's job in the round.
            up_bytes: bytes that the client uploads, [n].
            has_received_model: whether the client received the global model with a query of the same round.
            work_units: epochs or steps of each client, [n]; None for those of a whole job.
        """
        n_work_units = self.work_units if work_units is None else work_units
        epochs_per_job = self.work_units if self.components.client.steps is None else 1
        ones, query_bytes = np.ones(len(n_samples)), self.query_costs.down_bytes * np.asarray(has_received_model)
        n_sample_uses = self.count_sample_uses(n_samples, n_work_units)
        return Workload(
            unit_load=n_sample_uses / n_work_units * (job_costs.training_passes / 3.0) / epochs_per_job,
            infer_load=forward_passes / (3.0 * epochs_per_job),
            units=self.work_units,
            bytes_down=(job_costs.down_bytes - query_bytes) * ones,
            bytes_up=up_bytes * ones,
            epochs=epochs_per_job,
        )

    def expect_job_times(self, draws: Draws) -> dict[str, Values]:
        """Return the expected seconds of every client's whole job and of its phases, [n_clients] each, by name.

        `draws` has the random numbers of the run.
        """
        n_train, client = self.federation.n_train, self.components.client
        up_bytes = self.update_bytes + self.usual_job_costs.extra_bytes
        workload = self.make_workload(n_train, np.zeros(len(n_train)), self.usual_job_costs, up_bytes)
        job_timing = self.components.device.expect(np.arange(self.federation.n_clients), workload, draws)
        if self.components.device.timed:
            check_job_durations(job_timing.finish_s(self.work_units), n_train)
        n_steps = None if client.steps is None else count_batches(n_train, client.batch, self.merge_last_batch)
        return {
            "expected_s": job_timing.finish_s(self.work_units),
            "expected_unit_s": job_timing.unit_s,
            "expected_up_s": job_timing.up_s,
            "expected_down_s": job_timing.down_s,
            "pass_units": np.ones(len(n_train)) if n_steps is None else n_steps.astype(np.float64),
        }

    def sum_query_work(self, probes: Sequence[Probe], draws: Draws) -> QueryPasses:
        """Return the work that the queries `probes` require of each client, training included, in forward passes.

        `draws` has the random numbers of the round.
        """
        query_work = QueryPasses(*np.zeros((3, self.federation.n_clients)))
        for probe in probes:
            signal, clients = find_signal(probe.signal), probe.clients
            if isinstance(signal, ModelQuery):
                n_training_passes = self.sum_training_passes(signal, clients, probe.options, draws)
                sends_updates = getattr(signal, "jobs", None) is not None  # whether clients send updates for it
                (query_work.training_passes if sends_updates else query_work.model_passes)[clients] += n_training_passes
                uses_updated_model = sends_updates and n_training_passes.any()
                n_forward_passes = query_work.passes_after_training if uses_updated_model else query_work.model_passes
                n_forward_passes[clients] += self.count_query_passes(signal, clients, probe.options)
        return query_work

    def charge_registration(self, populations: Populations) -> Charge:
        """Return the charge of the signals that clients send when they register; `populations` has their values."""
        signal_by_name = {w: s for w in self.components.needed_signals() if isinstance(s := find_signal(w), Static)}
        return Charge(up_bytes=float(sum(s.bytes_up * populations.facts[s.fact].size for s in signal_by_name.values())))

    def charge_round(
        self,
        probes: Sequence[Probe],
        answers: Mapping[str, ProbeResult],
        jobs: Jobs,
        deadline_outcome: DeadlineOutcome,
        is_fedavg: bool,
        draws: Draws,
    ) -> Charge:
        """Return the bytes and FLOPs that a round costs.

        Each client receives the global model once, and once more for a signal that is made of clients' updates. A late
        client is charged for its full computation, but not for an upload. Excluded updates and updates for a signal are
        charged for, too. A client that is away before it answers a query is charged for its computation only.

        Args:
            probes: the selector's queries.
            answers: answers that arrived, by signal.
            jobs: jobs of the selected clients.
            deadline_outcome: jobs that arrived before the round closed.
            is_fedavg: whether the round is trained as FedAvg (`Selection.plain`).
            draws: random numbers of the round.
        """
        client_ids, job_costs, model_bytes = jobs.client, self.select_job_costs(is_fedavg), self.query_costs.down_bytes
        model_probes = [p for p in probes if isinstance(find_signal(p.signal), ModelQuery)]
        computed_probes = [(p, s) for p in model_probes if isinstance(s := find_signal(p.signal), Computed)]
        training_probes = [(probe, signal.jobs(probe.options)) for probe, signal in computed_probes if signal.jobs]
        n_sent_models = len(np.setdiff1d(list_queried_clients(model_probes), client_ids))
        n_sent_models += sum(len(p.clients) for p, _ in training_probes)
        answer_bytes = sum(find_signal(probe.signal).bytes_up * answers[probe.signal].values.size for probe in probes)
        answered_probes = drop_unanswered_clients(probes, answers)
        for k, signal in job_costs.queried_signals.items():
            answer_bytes += signal.bytes_up * int((~mark_answering_clients(k, client_ids, answered_probes)).sum())
        answer_bytes += self.update_bytes * sum(np.isin(w, answers[p.signal].clients).sum() for p, w in training_probes)
        n_forward_passes = float(self.count_forward_passes(client_ids, job_costs, answered_probes).sum())
        n_forward_passes += float(self.sum_query_work(probes, draws).total_passes.sum()) if probes else 0.0
        units_done = np.where(deadline_outcome.is_in_time, deadline_outcome.units_done, jobs.assigned)
        n_sample_uses = self.count_sample_uses(self.count_samples(client_ids, jobs.rows), units_done)
        n_charged_uses = n_sample_uses[~mark_trained_clients(client_ids, answered_probes)]
        return Charge(
            down_bytes=float(len(client_ids) * job_costs.down_bytes + n_sent_models * model_bytes),
            up_bytes=float(jobs.bytes_up[deadline_outcome.is_in_time].sum() + answer_bytes),
            probe_bytes=float(n_sent_models * model_bytes + answer_bytes),
            client_flops=self.pass_flops * (n_forward_passes + job_costs.training_passes * float(n_charged_uses.sum())),
        )
