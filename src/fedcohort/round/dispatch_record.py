"""The records of a round's decisions before its training: queries with their answers, the cohort, and its jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from fedcohort.draw_log import EMPTY_DRAW_LOG, DrawLog
from fedcohort.round.jobs import NO_JOBS, Jobs
from fedcohort.round.workload import drop_unanswered_clients
from fedcohort.types import Ids, Probe, ProbeResult, RoundContext, Selection, Values


@dataclass(frozen=True)
class QueryRecord:
    """The selector's queries of a round and their answers.

    Attributes:
        probes: the queries, in the order of the selector.
        answers_by_signal: answers of the clients that stayed available until they answered, by signal.
        query_s: virtual seconds of the queries before the selection.
        concurrent_query_s: virtual seconds of the queries during the training.
        has_received_model: whether a client received the global model with a query before the selection, bool
            [n_clients].
    """

    probes: Sequence[Probe]
    answers_by_signal: Mapping[str, ProbeResult]
    query_s: float
    concurrent_query_s: float
    has_received_model: Bool[np.ndarray, "clients"]

    def select_query_answers(self, is_query_concurrent: bool) -> dict[str, ProbeResult]:
        """Return the answers by signal to concurrent queries, during the training, or to those before the selection.

        Args:
            is_query_concurrent: whether to return the answers to concurrent queries.
        """
        return {p.signal: self.answers_by_signal[p.signal] for p in self.probes if p.concurrent == is_query_concurrent}

    @property
    def answered_probes(self) -> list[Probe]:
        """The selector's queries, each with only those of its clients that answered."""
        return drop_unanswered_clients(self.probes, self.answers_by_signal)


@dataclass(frozen=True)
class Dispatch:
    """The decisions of a round before its training.

    Attributes:
        round: number of the round, from 0.
        first_context: the selector's context at the start, with clients that work on earlier jobs, and with those
            that failed and may not be selected for some rounds (`round/backoff.py`).
        ready_ids: sorted ids of the clients that are available, including those that may not be selected.
        selection: the selector's choice.
        selector_state: state of the selector after its choice.
        queries: the selector's queries to clients, with their answers.
        jobs: the local work of each selected client.
        initial_losses: the global model's loss on each sample of a client, in nats, by id of the clients that measure
            all their samples in this round.
        wait_s: virtual seconds before the selection in which no client was ready.
        pause_s: virtual seconds from the end of the round before to the first query.
        start_s: virtual second at which the jobs begin.
        deadline_s: deadline that the clients received, in seconds after `start_s`; inf without one.
        uniform_cohort: sorted ids of a uniform reference cohort of the same size (`round/uniform.py`).
        draw_log: the draws by which the selector chose.
        refill_jobs: jobs of the clients that got a place that became free during the round (`round/refill.py`).
    """

    round: int
    first_context: RoundContext
    ready_ids: Ids
    selection: Selection
    selector_state: object
    queries: QueryRecord
    jobs: Jobs
    initial_losses: Mapping[int, Values]
    wait_s: float
    pause_s: float
    start_s: float
    deadline_s: float
    uniform_cohort: Ids
    draw_log: DrawLog = EMPTY_DRAW_LOG
    refill_jobs: Jobs = NO_JOBS
