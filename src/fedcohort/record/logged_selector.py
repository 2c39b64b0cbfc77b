"""A selector that is replayed from a run's log: it gets the contexts, answers and outcomes of the logged rounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcohort.draw_log import DrawLog, LoggedGenerator
from fedcohort.errors import IncompatibleConfig
from fedcohort.record.run_log import LoggedRound, RunLog
from fedcohort.rng import Draws
from fedcohort.round.backoff import NO_CLIENT_FAILURES, omit_failed_clients, update_backoff
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Derived, QueriedSignal, Static, find_signal
from fedcohort.types import (
    AggregationOverride,
    Population,
    Probe,
    ProbeResult,
    RoundContext,
    RoundOutcome,
    Selection,
    Signals,
)


class LoggedSelector:
    """A selector that is replayed: its contexts, answers to queries and outcomes come from a run's log.

    Args:
        selector: the selector to replay, which may differ from the run's.
        selector_name: name of its choice, for messages.
        run_log: the finished run.
        cohort: number of clients that the selector selects in each round.
    """

    def __init__(self, selector: Selector[Any], selector_name: str, run_log: RunLog, cohort: int) -> None:
        self.selector, self.name, self.log, self.cohort = selector, selector_name, run_log, cohort
        self.facts = Signals(run_log.facts, selector.needs, "the selector")
        self.state: Any = None
        self.failures = NO_CLIENT_FAILURES
        self.pairwise: frozenset[str] = frozenset()  # signals whose rows have a number for each arrived client

    def init_state(self, queried_signals: frozenset[str]) -> None:
        """Initialise the selector's state.

        Args:
            queried_signals: signals that the run's selector reads, which it may have queried in some rounds only.

        Raises:
            IncompatibleConfig: the selector reads values that the log lacks.
        """
        from fedcohort.round.client_columns import MAX_SIGNAL_COLUMNS  # noqa: PLC0415 - imports torch

        missing_signals = []
        has_wide_signal_rows = any(len(r.arrived_ids) > MAX_SIGNAL_COLUMNS for r in self.log.rounds)
        for name in sorted(self.selector.needs):
            signal = find_signal(name)
            if is_pairwise_signal := isinstance(signal, Derived) and signal.pairs:
                self.pairwise |= {name}
            is_signal_logged = name in (self.log.facts if isinstance(signal, Static) else self.log.signal_names)
            is_query_logged = name in queried_signals and isinstance(signal, QueriedSignal)
            if not (is_signal_logged or is_query_logged) or (is_pairwise_signal and has_wide_signal_rows):
                missing_signals.append(name)
        if missing_signals:
            raise IncompatibleConfig(
                f"selector={self.name} reads {', '.join(missing_signals)}, which the log of {self.log.info.folder} "
                "doesn't have: whole updates, values that the server measures, and rows of more than "
                f"{MAX_SIGNAL_COLUMNS} numbers are not logged. Choose another selector, or train with "
                f"selector={self.name}"
            )
        n_classes = self.log.info.class_counts.shape[1]
        self.state = self.selector.init(Population(self.log.n_clients, n_classes, self.cohort, self.facts))

    def replay_round(
        self, round: LoggedRound, logged_probes: Sequence[Probe] | None = None
    ) -> tuple[list[Probe], Selection, AggregationOverride | None]:
        """Replay a round, and return the selector's queries, its selection and its aggregation override.

        The override is None if the selector does not change the aggregation. It is also None if the round has no
        selected clients, or the selection differs from the run's; the selector then does not observe the outcome.

        Args:
            round: the round of the log.
            logged_probes: queries of the run's selector in this round; None if this selector is the run's.

        Raises:
            IncompatibleConfig: the log has no answers to a query of the selector.
        """
        probes, selection, _ = self.select(round, logged_probes)
        if not len(round.cohort) or not np.array_equal(selection.clients, round.cohort):
            return probes, selection, None
        return probes, selection, self.observe(round, selection, probes)

    def select(
        self, round: LoggedRound, logged_probes: Sequence[Probe] | None = None
    ) -> tuple[list[Probe], Selection, DrawLog]:
        """Return the selector's queries in a logged round, its selection, and the random draws behind both.

        Args:
            round: the round of the log.
            logged_probes: queries of the run's selector in this round; None if this selector is the run's.

        Raises:
            IncompatibleConfig: the log has no answers to a query of the selector.
        """
        run_log = self.log
        generator = Draws(run_log.info.seed, run_log.n_clients, round.t).generator("selector")
        rng = LoggedGenerator(generator, np.arange(run_log.n_clients), np.inf)
        ctx = RoundContext(
            round=round.t,
            cohort=self.cohort,
            n_clients=run_log.n_clients,
            available=round.available_ids,
            signals=self.facts,
            rng=rng,
            units=run_log.local_units,
        )
        if self.selector.backs_off:
            ctx = omit_failed_clients(self.failures, ctx, self.selector.shortlist(self.cohort))
        probes = list(self.selector.plan(self.state, ctx)) if len(round.available_ids) else []
        _check_queries_are_logged(run_log, round, self.name, probes if logged_probes is None else logged_probes, probes)
        query_results = {query.signal: self._answer_query(round, query) for query in probes if not query.concurrent}
        rng.start_selection()
        selection, self.state = self.selector.select(self.state, ctx, query_results)
        return probes, selection, rng.finish()

    def observe(self, round: LoggedRound, selection: Selection, probes: Sequence[Probe]) -> AggregationOverride | None:
        """Let the selector observe the round's logged outcome, and return its aggregation override.

        Args:
            round: the round of the log.
            selection: the selection of the run in this round, perhaps by another selector.
            probes: the selector's queries in this round.

        Raises:
            IncompatibleConfig: the log lacks the signal of a concurrent query.
        """
        signals = {n: v[round.arrived_ids] for n, v in round.signals.items()}
        # the rows of other rounds may be wider
        signals |= {n: signals[n][:, : len(round.arrived_ids)] for n in self.pairwise}
        round_outcome = RoundOutcome(
            round=round.t,
            selection=selection,
            clients=round.arrived_ids,
            failed=np.setdiff1d(round.cohort, round.arrived_ids),
            signals=Signals({**self.log.facts, **signals}, self.selector.needs, "the selector"),
            probes={probe.signal: self._answer_query(round, probe) for probe in probes if probe.concurrent},
            round_s=round.round_s,
        )
        aggregation_override, self.state = self.selector.observe(self.state, round_outcome)
        self.failures = update_backoff(self.failures, round_outcome)
        return aggregation_override

    def _answer_query(self, round: LoggedRound, query: Probe) -> ProbeResult:
        if query.signal not in round.signals:
            raise IncompatibleConfig(
                f"selector={self.name} queries {query.signal} in round {round.t + 1}, which the log of "
                f"{self.log.info.folder} doesn't have: choose another selector, or train with selector={self.name}"
            )
        return ProbeResult(query.clients, round.signals[query.signal][query.clients])


def _check_queries_are_logged(
    run_log: RunLog, round: LoggedRound, name: str, logged_probes: Sequence[Probe], probes: Sequence[Probe]
) -> None:
    """Raise `IncompatibleConfig` for a query to which the log has no answers.

    Args:
        run_log: the finished run.
        round: the round that is replayed.
        name: name of the replayed selector.
        logged_probes: queries of the run's selector in this round.
        probes: queries of the replayed selector.
    """
    for query in probes:
        matching_probes = [p for p in logged_probes if p.signal == query.signal and p.options == query.options]
        if not matching_probes or not np.isin(query.clients, matching_probes[0].clients).all():
            options_text = "".join(f" {k}={v}" for k, v in query.options.items())
            raise IncompatibleConfig(
                f"selector={name} queries {query.signal}{options_text} in round {round.t + 1} from clients for which "
                f"the log of {run_log.info.folder} has no value: choose another selector, or train with selector={name}"
            )
