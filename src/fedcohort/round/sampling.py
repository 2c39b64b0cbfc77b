"""Sample selection in a round: measurement of losses, choice of samples, and the losses that clients keep."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.rng import Draws
from fedcohort.round.jobs import Jobs
from fedcohort.round.store import ClientStore
from fedcohort.samples.base import LOSS_LIST_NAME, SampleRequest, Samples
from fedcohort.signal.access import SignalAccess
from fedcohort.training.client_task import LossStorageFunction
from fedcohort.types import Ids, Values

NO_LOSSES = np.empty(0)


class SampleSelection:
    """Applies the run's sample selection to the clients of a round.

    Args:
        sample_selection: the component that chooses samples.
        federation: data of the run.
        batch_size: samples of a mini-batch, None for all of a client's.
        client_store: vectors that clients keep between rounds.
        signal_measurer: measures losses on the clients' data.
    """

    def __init__(
        self,
        sample_selection: Samples[Any],
        federation: Federation,
        batch_size: int | None,
        client_store: ClientStore,
        signal_measurer: SignalAccess,
    ) -> None:
        self.sample_selection, self.n_train, self.batch = sample_selection, federation.n_train, batch_size
        self.store, self.measurer = client_store, signal_measurer

    def find_clients_without_losses(self, state: object, selected_ids: Ids) -> Ids:
        """Return the sorted ids, [n], of selected clients that must keep losses of their samples, and have none yet.

        Args:
            state: state of the sample selection.
            selected_ids: sorted ids of the selected clients.
        """
        if not self.sample_selection.keeps_losses:
            return selected_ids[:0]
        loss_keeping_ids = selected_ids[self.sample_selection.stores_losses(state, self.n_train[selected_ids])].tolist()
        return np.array(
            [k for k in loss_keeping_ids if LOSS_LIST_NAME not in self.store.read_vectors(k)], dtype=np.int64
        )

    def choose_samples(self, state: object, jobs: Jobs, measured_losses: Mapping[int, Values], draws: Draws) -> Jobs:
        """Return the jobs with the positions of the samples that each client trains on.

        Args:
            state: state of the sample selection.
            jobs: jobs with expected timing and announced deadline.
            measured_losses: losses, in nats, of the clients that measure all their samples in this round, by id.
            draws: random numbers of the round.
        """
        clients = jobs.client.tolist()
        if self.sample_selection.uses_all_samples:
            return replace(jobs, rows=[None] * len(clients), losses=[None] * len(clients))
        first_losses_by_client = [
            measured_losses[k] if k in measured_losses else self._read_stored_losses(k, int(self.n_train[k]))
            for k in clients
        ]
        jobs = replace(jobs, losses=first_losses_by_client)
        sample_requests = (self._make_sample_request(jobs, job_row, draws) for job_row in range(len(clients)))
        chosen_rows = [self.sample_selection.choose(state, sample_request) for sample_request in sample_requests]
        rows_and_sizes = zip(chosen_rows, self.n_train[jobs.client].tolist(), strict=True)
        return replace(jobs, rows=[None if len(r) == n_samples else r for r, n_samples in rows_and_sizes])

    def make_loss_updater(self, threshold: float, jobs: Jobs, job_row: int, draws: Draws) -> LossStorageFunction | None:
        """Return the function that updates a client's stored losses after its training; None if it stores none.

        Args:
            threshold: loss threshold that the client received with its job, in nats.
            jobs: jobs of the round.
            job_row: row of the client's job.
            draws: random numbers of the round in which the job was sent.
        """
        losses = jobs.losses[job_row]
        if losses is None or not len(losses):
            return None
        sample_request = self._make_sample_request(jobs, job_row, draws)
        return partial(self._update_stored_losses, threshold, sample_request, jobs.rows[job_row])

    def _make_sample_request(self, jobs: Jobs, job_row: int, draws: Draws) -> SampleRequest:
        client, timing, losses = int(jobs.client[job_row]), jobs.expected, jobs.losses[job_row]
        n_samples = int(self.n_train[client])
        return SampleRequest(
            client=client,
            n=n_samples,
            deadline_s=float(jobs.announced_s[job_row]),
            travel_s=float(timing.down_s[job_row] + timing.infer_s[job_row] + timing.up_s[job_row]),
            unit_s=float(timing.unit_s[job_row]),
            units=int(jobs.assigned[job_row]),
            batch=min(self.batch or n_samples, n_samples),
            losses=NO_LOSSES if losses is None else losses,
            rng=partial(draws.generator, client=client),
        )

    def _read_stored_losses(self, client: int, n_samples: int) -> Values:
        """Return the losses of its samples that `client` stores, in nats, [n_samples]; empty if it stores none."""
        losses = self.store.read_vectors(client).get(LOSS_LIST_NAME) if self.sample_selection.keeps_losses else None
        return NO_LOSSES if losses is None else losses[:n_samples].double().cpu().numpy()

    def _update_stored_losses(
        self, threshold: float, sample_request: SampleRequest, sample_rows: Ids | None, training_losses: Values
    ) -> tuple[Mapping[str, Tensor], Mapping[str, float]]:
        """Return the losses that a client stores and the values that it reports after its training, by name.

        Args:
            threshold: loss threshold that the client received with its job, in nats.
            sample_request: the client and its stored losses.
            sample_rows: positions of the samples that the client trained on, None for all.
            training_losses: losses of these samples during the training, in nats; NaN for an unused sample.
        """
        updated_losses = sample_request.losses.copy()
        trained_positions = slice(None) if sample_rows is None else sample_rows
        updated_losses[trained_positions] = np.where(
            np.isnan(training_losses), updated_losses[trained_positions], training_losses
        )
        loss_report = self.sample_selection.report_losses(threshold, sample_request, updated_losses)
        return pack_losses(updated_losses), loss_report


def predict_chosen_samples(sample_selection: Samples[Any], client: int, n_samples: int, draws: Draws) -> Ids | None:
    """Return the positions, [n], of the samples that a client would train on in a round, None for all of them.

    It serves queries for which clients train before the selection, when neither the deadline nor losses are available.
    Components with such queries require a sample selection with `is_foreseeable`.

    Args:
        sample_selection: the component that chooses samples.
        client: id of the client.
        n_samples: number of the client's training samples.
        draws: random numbers of the round.
    """
    if sample_selection.uses_all_samples:
        return None
    rng = partial(draws.generator, client=client)
    sample_request = SampleRequest(client, n_samples, math.inf, 0.0, 0.0, 1, n_samples, NO_LOSSES, rng)
    chosen_positions = sample_selection.choose(None, sample_request)
    return None if len(chosen_positions) == n_samples else chosen_positions


def pack_losses(losses: Values) -> Mapping[str, Tensor]:
    """Return a client's sample losses as float32 vectors by name, in the form of the client store.

    The NaN of a diverged model becomes inf, as a row that begins with NaN means that nothing is kept when rows are in
    files or pass between processes (`round/store.py`).

    Args:
        losses: losses in nats, [n_samples].
    """
    return {LOSS_LIST_NAME: torch.from_numpy(np.where(np.isnan(losses), np.inf, losses).astype(np.float32))}
