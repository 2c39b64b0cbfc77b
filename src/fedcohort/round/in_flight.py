"""Jobs that are in flight between two rounds, and the models that were sent with them.

A job that ends in a later round is trained in that round, from the model that its client received. Its rows of the
table of jobs and that model are part of the server's state, and so of every checkpoint. Models that need more than
`client_store.limit_gb` are in files.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from fedcohort.flat import FlatModel
from fedcohort.round.jobs import NO_JOBS, Jobs
from fedcohort.types import Ids, ReadOnly, RoundContext, Values


@dataclass(frozen=True)
class Broadcast:
    """The model and the vectors that the server sent to the clients of a round.

    Attributes:
        w: parameters of the global model, [P].
        buffers: float buffers of the global model, [B].
        counters: integer buffers of the global model, [I].
        vectors: vectors that the aggregator sent, by name.
        threshold: loss threshold that the sample selection sent, in nats.
    """

    w: Tensor
    buffers: Tensor
    counters: Tensor
    vectors: dict[str, Tensor]
    threshold: float = 0.0

    @classmethod
    def copy_model(cls, server: FlatModel, agg_vectors: Mapping[str, Tensor], threshold: float = 0.0) -> "Broadcast":
        """Return a copy of the global model `server` and of `agg_vectors`, by name, with the loss threshold in nats."""
        vector_copies = {vector_name: vector.clone() for vector_name, vector in agg_vectors.items()}
        return cls(server.w.detach().clone(), server.buffers.clone(), server.counters.clone(), vector_copies, threshold)

    def move_to_files(self, folder: Path) -> "Broadcast":
        """Return this broadcast with its parameters and vectors in temporary files in `folder` instead of memory.

        The system removes the files after their last use. They are written before they are mapped, so that a full disk
        raises `OSError`. Buffers, which are small, stay in memory.
        """

        def move_tensor(tensor: Tensor) -> Tensor:
            values = tensor.cpu().numpy()
            with tempfile.TemporaryFile(dir=folder) as tensor_file:
                tensor_file.write(values.data)
                tensor_file.flush()
                return torch.from_numpy(np.memmap(tensor_file, values.dtype, mode="c", shape=values.shape))

        return replace(self, w=move_tensor(self.w), vectors={k: move_tensor(v) for k, v in self.vectors.items()})

    @torch.no_grad()
    def parameter_change(self, server: FlatModel) -> Tensor:
        """Return the difference of this broadcast's parameters from those of the model `server`, float64 [P]."""
        return self.w.to(server.w.device).double() - server.w.double()

    @torch.no_grad()
    def copy_to_model(self, server: FlatModel) -> None:
        """Copy the parameters and buffers of this broadcast into the model `server`."""
        server.w.copy_(self.w)
        server.buffers.copy_(self.buffers)
        server.counters.copy_(self.counters)


@dataclass(frozen=True)
class JobsInFlight(ReadOnly):
    """The jobs in flight between two rounds, those whose updates arrive in a later round.

    Attributes:
        jobs: the jobs, sorted by client.
        agg_answers: answers to the aggregator's queries about the model that was sent, by signal, each [len(jobs)].
        broadcasts: the model and vectors that were sent with the jobs, by the round in which they were sent.
    """

    jobs: Jobs = NO_JOBS
    agg_answers: dict[str, Values] = field(default_factory=dict)
    broadcasts: dict[int, Broadcast] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.jobs)

    def select_jobs(self, is_job_selected: Bool[np.ndarray, "_m"]) -> "JobsInFlight":
        """Return only the jobs that are marked in `is_job_selected`, bool [len(jobs)], with their answers."""
        if is_job_selected.all():
            return self
        kept_agg_answers = {k: job_answers[is_job_selected] for k, job_answers in self.agg_answers.items()}
        return replace(self, jobs=self.jobs.select_jobs(is_job_selected), agg_answers=kept_agg_answers)

    def merge_jobs(self, jobs: Jobs, agg_answers: Mapping[str, Values]) -> "JobsInFlight":
        """Return these jobs in flight with further jobs, sorted by client.

        Args:
            jobs: jobs of other clients.
            agg_answers: their answers to the aggregator's queries, by signal, each [len(jobs)].
        """
        if not len(jobs):
            return self
        return replace(self, jobs=self.jobs.merge_jobs(jobs), agg_answers=self.merge_answers(jobs.client, agg_answers))

    def merge_answers(self, clients: Ids, agg_answers: Mapping[str, Values]) -> dict[str, Values]:
        """Return the answers of the clients in flight and of other clients, by signal, sorted by client id.

        Args:
            clients: ids of the other clients.
            agg_answers: their answers to the aggregator's queries, by signal, each [len(clients)].
        """
        if not len(self):
            return dict(agg_answers)
        client_order = np.argsort(np.concatenate([self.jobs.client, clients]))
        answers_in_flight = {k: self.agg_answers.get(k, np.empty(0)) for k in agg_answers}
        return {k: np.concatenate([answers_in_flight[k], v])[client_order] for k, v in agg_answers.items()}

    def keep_broadcasts(self, broadcasts: Mapping[int, Broadcast], max_staleness: int | None = None) -> "JobsInFlight":
        """Return these jobs in flight with the broadcasts from which at least one of them started.

        Args:
            broadcasts: the models and vectors that were sent, by round, up to the present one.
            max_staleness: largest staleness of an update that counts, so that older models are not kept; None for no
                limit.
        """
        oldest_round = 0 if max_staleness is None else max(broadcasts) + 1 - max_staleness
        job_start_rounds = {r for r in self.jobs.broadcast.tolist() if r >= oldest_round}
        return replace(self, broadcasts={r: m for r, m in broadcasts.items() if r in job_start_rounds})

    def limit_memory(self, limit_gb: float, folder: Path | None) -> "JobsInFlight":
        """Return these jobs, with the newest broadcast in files if all broadcasts need more memory than the limit.

        Args:
            limit_gb: the limit in gigabytes.
            folder: run folder, which holds the files; None for memory in any case.
        """
        n_bytes = sum(v.nbytes for b in self.broadcasts.values() for v in (b.w, *b.vectors.values()))
        if folder is None or n_bytes <= 1e9 * limit_gb:
            return self
        newest_round = max(self.broadcasts)
        broadcast_in_files = self.broadcasts[newest_round].move_to_files(folder)
        return replace(self, broadcasts={**self.broadcasts, newest_round: broadcast_in_files})


def find_job_seconds_left(jobs: Jobs, now_s: float) -> Values:
    """Return the seconds from virtual second `now_s` until each of `jobs` ends, [len(jobs)]; 0 if it has ended."""
    return np.asarray(np.maximum(jobs.end_s - now_s, 0.0))


def exclude_busy_clients(ctx: RoundContext, busy_jobs: Jobs, now_s: float) -> RoundContext:
    """Return a round's context without the clients that work on earlier jobs as available.

    Args:
        ctx: context of the round.
        busy_jobs: the jobs in flight, which the new context lists with their remaining seconds.
        now_s: virtual second of the context.
    """
    if not len(busy_jobs):
        return ctx
    is_client_free = np.ones(ctx.n_clients, dtype=bool)
    is_client_free[busy_jobs.client] = False
    return replace(
        ctx,
        available=ctx.available[is_client_free[ctx.available]],
        in_flight=busy_jobs.client,
        in_flight_s=np.maximum(busy_jobs.expected_end_s - now_s, 0.0),
    )


class SentModels:
    """The models from which the jobs of a round start: mostly the current one, for late jobs an earlier one.

    Args:
        server: the global model.
        round: number of the current round.
        agg_vectors: vectors that the aggregator sends in the current round, by name.
        broadcasts: the models and vectors that were sent in earlier rounds, by round.
    """

    def __init__(
        self, server: FlatModel, round: int, agg_vectors: Mapping[str, Tensor], broadcasts: Mapping[int, Broadcast]
    ) -> None:
        self.server, self.round, self.vectors, self.broadcasts = server, round, agg_vectors, broadcasts

    @contextmanager
    def load_model(self, round: int) -> Iterator[Mapping[str, Tensor]]:
        """Load the model that was sent in `round` into the global model while the context lasts.

        Yields:
            The vectors that the aggregator sent in that round, by name.
        """
        if round == self.round:
            yield self.vectors
            return
        current_model, broadcast = Broadcast.copy_model(self.server, {}), self.broadcasts[round]
        broadcast.copy_to_model(self.server)
        try:
            yield {vector_name: vector.to(self.server.w.device) for vector_name, vector in broadcast.vectors.items()}
        finally:
            current_model.copy_to_model(self.server)
