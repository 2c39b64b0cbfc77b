"""A selector that gets its contexts, answers and outcomes from a run's log instead of a federation (`replay.py`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcohort.errors import IncompatibleConfig
from fedcohort.record.replayable import LoggedRound, RunLog
from fedcohort.rng import Draws
from fedcohort.round.backoff import NO_FAILURES, update, withhold
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Computed, Derived, Measured, RawUpdate, ServerMeasured, Signal, Static, find
from fedcohort.types import Advice, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Signals


class LoggedSelector:
    """A selector, its state, and the log that it reads, one round after the other."""

    def __init__(self, selector: Selector[Any], name: str, log: RunLog, cohort: int) -> None:
        """Take the selector with the name of its option, the log, and how many clients a round asks for."""
        self.selector, self.name, self.log, self.cohort = selector, name, log, cohort
        self.facts = Signals(log.facts, selector.needs, "the selector")
        self.state: Any = None
        self.failures = NO_FAILURES
        self.pairwise: frozenset[str] = frozenset()  # signals whose rows have a number for each arrived client

    def start(self, queried: frozenset[str]) -> None:
        """Initialise the state. Raises `IncompatibleConfig` if the selector reads what the log does not hold.

        queried: signals that the run's selector may have queried. FedCor queries some after its warm-up only.
        """
        signals = {name: find(name) for name in sorted(self.selector.needs)}
        self.pairwise = frozenset(
            name for name, signal in signals.items() if isinstance(signal, Derived) and signal.pairs
        )
        missing = []
        for name, signal in signals.items():
            logged = self.log.facts if isinstance(signal, Static) else self.log.signal_names
            may_be_logged = name in queried and isinstance(signal, Measured | Computed)
            if (name not in logged and not may_be_logged) or (name in self.pairwise and find_wide_round(self.log)):
                missing.append(name)
        if missing:
            reasons = sorted({reason for name in missing if (reason := explain_unlogged(self.log, signals[name]))})
            raise IncompatibleConfig(
                f"selector={self.name} reads {', '.join(missing)}, which the log of {self.log.info.folder} doesn't have"
                + (f": {', and '.join(reasons)}" if reasons else "")
            )
        n_classes = self.log.info.class_counts.shape[1]
        self.state = self.selector.init(Population(self.log.n_clients, n_classes, self.cohort, self.facts))

    def plan(self, round: LoggedRound) -> tuple[RoundContext, list[Probe]]:
        """Return the context of the round, and the queries that the selector makes in it."""
        log = self.log
        ctx = RoundContext(
            round=round.t,
            cohort=self.cohort,
            n_clients=log.n_clients,
            available=round.available,
            signals=self.facts,
            rng=Draws(log.info.seed, log.n_clients, round.t).generator("selector"),
            units=log.units,
        )
        if self.selector.backs_off:
            ctx = withhold(self.failures, ctx, self.selector.shortlist(self.cohort))
        return ctx, list(self.selector.plan(self.state, ctx)) if len(round.available) else []

    def select(self, round: LoggedRound, ctx: RoundContext, probes: Sequence[Probe]) -> Selection:
        """Return the selection, given the logged answers to the queries made before it."""
        answers = {probe.signal: self._answer(round, probe) for probe in probes if not probe.concurrent}
        selection, self.state = self.selector.select(self.state, ctx, answers)
        return selection

    def observe(self, round: LoggedRound, selection: Selection, probes: Sequence[Probe]) -> Advice | None:
        """Pass the logged outcome of the round to the selector; None for a round without a cohort."""
        if not len(round.chosen):
            return None
        reports = {name: values[round.arrived] for name, values in round.signals.items()}
        reports |= {name: reports[name][:, : len(round.arrived)] for name in self.pairwise}  # other rounds may be wider
        outcome = RoundOutcome(
            round=round.t,
            selection=selection,
            clients=round.arrived,
            failed=np.setdiff1d(round.chosen, round.arrived),
            signals=Signals({**self.log.facts, **reports}, self.selector.needs, "the selector"),
            probes={probe.signal: self._answer(round, probe) for probe in probes if probe.concurrent},
            round_s=round.round_s,
        )
        advice, self.state = self.selector.observe(self.state, outcome)
        self.failures = update(self.failures, outcome)
        return advice

    def _answer(self, round: LoggedRound, probe: Probe) -> ProbeResult:
        if probe.signal not in round.signals:
            raise IncompatibleConfig(
                f"selector={self.name} asks for {probe.signal} in round {round.t + 1}, which the log of "
                f"{self.log.info.folder} doesn't have"
            )
        return ProbeResult(probe.clients, round.signals[probe.signal][probe.clients])


def find_wide_round(log: RunLog) -> LoggedRound | None:
    """Return the first round with more arrived clients than columns of a signal of pairs are logged; None without."""
    from fedcohort.round.report import MAX_COLUMNS  # noqa: PLC0415 - imports torch

    return next((round for round in log.rounds if len(round.arrived) > MAX_COLUMNS), None)


def explain_unlogged(log: RunLog, signal: Signal) -> str:
    """Return why a log of a run with this selector cannot hold the signal; "" if it can."""
    if isinstance(signal, Derived) and signal.pairs:
        wide = find_wide_round(log)
        return (
            ""
            if wide is None
            else f"its rows of {len(wide.arrived)} numbers are too long to be logged (round {wide.t + 1})"
        )
    if isinstance(signal, ServerMeasured):
        return "values that the server measures are not logged"
    return "whole updates are not logged" if isinstance(signal, Derived | RawUpdate) else ""
