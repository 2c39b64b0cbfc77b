"""A selector that is led through a run's log instead of a federation (`replay.py`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcohort.errors import IncompatibleConfig
from fedcohort.record.replayable import LoggedRound, RunLog
from fedcohort.rng import Draws
from fedcohort.round.backoff import NO_FAILURES, update, withhold
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Computed, Derived, Measured, RawUpdate, ServerMeasured, Signal, Static, find
from fedcohort.types import (
    Advice,
    Population,
    Probe,
    ProbeResult,
    RoundContext,
    RoundOutcome,
    Selection,
    Signals,
)


class LoggedSelector:
    """A selector that is led through a log, one round after the other. cohort: clients that were asked for."""

    def __init__(self, selector: Selector[Any], word: str, log: RunLog, cohort: int) -> None:
        self.selector, self.word, self.log, self.cohort = selector, word, log, cohort
        self.fixed = Signals(log.facts, selector.needs, "the selector")
        self.state: Any = None
        self.failures = NO_FAILURES
        self.pairs: frozenset[str] = frozenset()  # words whose rows are as wide as the round

    def start(self, requests: frozenset[str]) -> None:
        """Raise `IncompatibleConfig` where the selector reads what the log doesn't hold.

        requests: words that the run's selector may have asked for. It may never have come to that: FedCor's shadow
        rounds begin after the warm-up.
        """
        signals = {word: find(word) for word in sorted(self.selector.needs)}
        self.pairs = frozenset(word for word, signal in signals.items() if isinstance(signal, Derived) and signal.pairs)
        lacking = []
        for word, signal in signals.items():
            known = self.log.facts if isinstance(signal, Static) else self.log.words
            asks = word in requests and isinstance(signal, Measured | Computed)
            if (word not in known and not asks) or (word in self.pairs and wide(self.log) is not None):
                lacking.append(word)
        if lacking:
            why = sorted({reason for word in lacking if (reason := explain_unlogged(self.log, signals[word]))})
            raise IncompatibleConfig(
                f"selector={self.word} reads {', '.join(lacking)}, which the log of {self.log.info.folder} doesn't have"
                + (f": {', and '.join(why)}" if why else "")
            )
        n_classes = self.log.info.class_counts.shape[1]
        self.state = self.selector.init(Population(self.log.n_clients, n_classes, self.cohort, self.fixed))

    def plan(self, now: LoggedRound) -> tuple[RoundContext, list[Probe]]:
        log = self.log
        ctx = RoundContext(
            round=now.t,
            cohort=self.cohort,
            n_clients=log.n_clients,
            available=now.available,
            signals=self.fixed,
            rng=Draws(log.info.seed, log.n_clients, now.t).generator("selector"),
            units=log.units,
        )
        if self.selector.backs_off:
            ctx = withhold(self.failures, ctx, self.selector.shortlist(self.cohort))
        return ctx, list(self.selector.plan(self.state, ctx)) if len(now.available) else []

    def select(self, now: LoggedRound, ctx: RoundContext, probes: Sequence[Probe]) -> Selection:
        blocking = {probe.signal: self._answer(now, probe) for probe in probes if not probe.concurrent}
        selection, self.state = self.selector.select(self.state, ctx, blocking)
        return selection

    def observe(self, now: LoggedRound, selection: Selection, probes: Sequence[Probe]) -> Advice | None:
        """Tell the selector what came of the round, as after the training.

        Where nobody was selected, nothing is learned.
        """
        if not len(now.chosen):
            return None
        reports = {word: values[now.arrived] for word, values in now.signals.items()}
        reports |= {word: reports[word][:, : len(now.arrived)] for word in self.pairs}  # other rounds may be wider
        outcome = RoundOutcome(
            round=now.t,
            selection=selection,
            clients=now.arrived,
            failed=np.setdiff1d(now.chosen, now.arrived),
            signals=Signals({**self.log.facts, **reports}, self.selector.needs, "the selector"),
            probes={probe.signal: self._answer(now, probe) for probe in probes if probe.concurrent},
            round_s=now.round_s,
        )
        advice, self.state = self.selector.observe(self.state, outcome)
        self.failures = update(self.failures, outcome)
        return advice

    def _answer(self, now: LoggedRound, probe: Probe) -> ProbeResult:
        if probe.signal not in now.signals:
            raise IncompatibleConfig(
                f"selector={self.word} asks for {probe.signal} in round {now.t + 1}, which the log of "
                f"{self.log.info.folder} doesn't have"
            )
        return ProbeResult(probe.clients, now.signals[probe.signal][probe.clients])


def wide(log: RunLog) -> LoggedRound | None:
    """The first round in which more clients arrived than a row of the per-client table has numbers."""
    from fedcohort.round.report import MAX_COLUMNS  # noqa: PLC0415 - imports torch

    return next((now for now in log.rounds if len(now.arrived) > MAX_COLUMNS), None)


def explain_unlogged(log: RunLog, signal: Signal) -> str:
    """Why no log of such a run has it; empty where another run's might."""
    if isinstance(signal, Derived) and signal.pairs:
        now = wide(log)
        return "" if now is None else f"rows of {len(now.arrived)} numbers are too long for it (round {now.t + 1})"
    if isinstance(signal, ServerMeasured):
        return "what the server measures itself is not logged"
    return "whole updates are not logged" if isinstance(signal, Derived | RawUpdate) else ""
