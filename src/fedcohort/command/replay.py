"""Replay a run's selector from its log, without training: fedcohort replay <run folder>

    fedcohort replay <run folder> selector.gamma_scale=0.1              the run's selector with other options
    fedcohort replay <run folder> selector=flash selector.lam=2         another selector

The run's own selector must choose as the run did: this version of the code still does what the run did. Another one is
followed to the first round in which it chooses otherwise; from there on it would have had another model to ask about.
What the log doesn't hold can't be read again: the updates themselves (selector.variant=feddiverse_paper of HCSFed, and
selector.loss_check=true of FedPNS, which tries models), and rows of more than 64 numbers (HCSFed's sketches of larger
models; FedPNS where more clients arrive). Runs whose late updates arrive in later rounds are not replayed.
Exit code 0 if all choices are the same, 1 if a round differs, 2 where that can't be found out.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort import ranges
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError
from fedcohort.record.replayable import LoggedRound, RunLog, read_log
from fedcohort.rng import Draws
from fedcohort.round.backoff import NO_FAILURES, update_backoff, withhold
from fedcohort.selector.base import Selector
from fedcohort.signal.base import Derived, QueriedSignal, Static, find_signal
from fedcohort.startup import components, compose
from fedcohort.types import Advice, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection, Signals

USAGE = "fedcohort replay <run folder> [selector=<option>] [selector.<option>=<value> ...]"


class LoggedSelector:
    """A selector that gets its contexts, answers and outcomes from a run's log, one round after the other."""

    def __init__(self, selector: Selector[Any], name: str, log: RunLog, cohort: int) -> None:
        self.selector, self.name, self.log, self.cohort = selector, name, log, cohort
        self.facts = Signals(log.facts, selector.needs, "the selector")
        self.state: Any = None
        self.failures = NO_FAILURES
        self.pairwise: frozenset[str] = frozenset()  # signals whose rows have a number for each arrived client

    def start(self, queried_signals: frozenset[str]) -> None:
        """Initialise the selector's state. Raises `IncompatibleConfig` if it reads values that the log lacks.

        queried_signals: signals that the run's selector may have queried, such as FedCor's after its warm-up.
        """
        from fedcohort.round.report import MAX_SIGNAL_COLUMNS  # noqa: PLC0415 - imports torch

        missing_signals, is_wide = [], any(len(round.arrived) > MAX_SIGNAL_COLUMNS for round in self.log.rounds)
        for name in sorted(self.selector.needs):
            signal = find_signal(name)
            if is_pairwise := isinstance(signal, Derived) and signal.pairs:
                self.pairwise |= {name}
            is_logged = name in (self.log.facts if isinstance(signal, Static) else self.log.signal_names)
            may_be_logged = name in queried_signals and isinstance(signal, QueriedSignal)
            if not (is_logged or may_be_logged) or (is_pairwise and is_wide):
                missing_signals.append(name)
        if missing_signals:
            raise IncompatibleConfig(
                f"selector={self.name} reads {', '.join(missing_signals)}, which the log of {self.log.info.folder} "
                "doesn't have: whole updates, values that the server measures, and rows of more than "
                f"{MAX_SIGNAL_COLUMNS} numbers are not logged"
            )
        n_classes = self.log.info.class_counts.shape[1]
        self.state = self.selector.init(Population(self.log.n_clients, n_classes, self.cohort, self.facts))

    def play(
        self, round: LoggedRound, logged_probes: Sequence[Probe] | None = None
    ) -> tuple[list[Probe], Selection, Advice | None]:
        """Replay a round, and return the selector's queries, its selection and its advice.

        The advice is None if the selection differs from the run's. Raises `IncompatibleConfig` for a query that is not
        among `logged_probes`, the queries of the run's selector; None for this selector itself.
        """
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
        probes = list(self.selector.plan(self.state, ctx)) if len(round.available) else []
        _check_queries(log, round, self.name, probes if logged_probes is None else logged_probes, probes)
        answers_before = {probe.signal: self._answer(round, probe) for probe in probes if not probe.concurrent}
        selection, self.state = self.selector.select(self.state, ctx, answers_before)
        if not len(round.chosen) or not np.array_equal(selection.clients, round.chosen):
            return probes, selection, None
        reports = {name: values[round.arrived] for name, values in round.signals.items()}
        reports |= {name: reports[name][:, : len(round.arrived)] for name in self.pairwise}  # other rounds may be wider
        outcome = RoundOutcome(
            round=round.t,
            selection=selection,
            clients=round.arrived,
            failed=np.setdiff1d(round.chosen, round.arrived),
            signals=Signals({**log.facts, **reports}, self.selector.needs, "the selector"),
            probes={probe.signal: self._answer(round, probe) for probe in probes if probe.concurrent},
            round_s=round.round_s,
        )
        advice, self.state = self.selector.observe(self.state, outcome)
        self.failures = update_backoff(self.failures, outcome)
        return probes, selection, advice

    def _answer(self, round: LoggedRound, probe: Probe) -> ProbeResult:
        if probe.signal not in round.signals:
            raise IncompatibleConfig(
                f"selector={self.name} asks for {probe.signal} in round {round.t + 1}, which the log of "
                f"{self.log.info.folder} doesn't have"
            )
        return ProbeResult(probe.clients, round.signals[probe.signal][probe.clients])


@dataclass(frozen=True)
class Replayed:
    """The result of a replay.

    Attributes:
        rounds: rounds of the log.
        step: the first round that differs, counting from 1; None if all are the same.
        chosen: clients that the run selected in that round.
        chosen_by_candidate: clients that the replayed selector selects in it.
    """

    rounds: int
    step: int | None = None
    chosen: Sequence[int] = ()
    chosen_by_candidate: Sequence[int] = ()


def replay(log: RunLog, logged_selector: LoggedSelector, candidate: LoggedSelector) -> Replayed:
    """Replay `candidate` round by round, together with the run's selector, whose queries the log can answer.

    Args:
        log: log of the run.
        logged_selector: the selector of the run.
        candidate: the selector that is compared with the run; may be the same object.

    Raises:
        IncompatibleConfig: if `candidate` queries what the run did not query.
        CheckpointError: if `logged_selector` departs from the log.
    """
    is_other = candidate is not logged_selector
    for selector in (logged_selector, candidate) if is_other else (logged_selector,):
        selector.start(logged_selector.selector.needs)
    for round in log.rounds:
        logged_probes, selection, advice = logged_selector.play(round)
        if is_other and not np.array_equal(selection.clients, round.chosen):
            raise CheckpointError(
                f"replaying {log.info.folder} with its own selector gives another cohort in round {round.t + 1}: "
                "fedcohort or the selector has changed since the run, so that no other selector can be compared"
            )
        other_advice = advice
        if is_other:
            _, selection, other_advice = candidate.play(round, logged_probes)
        if not np.array_equal(selection.clients, round.chosen):
            return Replayed(len(log.rounds), round.t + 1, round.chosen.tolist(), selection.clients.tolist())
        if not _equal(advice, other_advice):
            raise IncompatibleConfig(
                f"selector={candidate.name} selects the clients of the run up to round {round.t + 1}, but gives their "
                "updates other weights there. The log does not hold the model that follows, so that later rounds can't "
                f"be replayed: train with selector={candidate.name} to compare them"
            )
    return Replayed(len(log.rounds))


def _check_queries(
    log: RunLog, round: LoggedRound, name: str, logged_probes: Sequence[Probe], probes: Sequence[Probe]
) -> None:
    """Raise `IncompatibleConfig` for a query in `probes`, of the selector `name`, that is not in `logged_probes`."""
    for probe in probes:
        match = [query for query in logged_probes if query.signal == probe.signal and query.options == probe.options]
        if not match or not np.isin(probe.clients, match[0].clients).all():
            options = "".join(f" {option}={value}" for option, value in probe.options.items())
            raise IncompatibleConfig(
                f"selector={name} queries {probe.signal}{options} in round {round.t + 1} from clients for which the "
                f"log of {log.info.folder} has no value"
            )


def _equal(a: Advice | None, b: Advice | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.absolute == b.absolute and np.array_equal(a.keep, b.keep) and np.array_equal(a.weights, b.weights)  # type: ignore[arg-type]


def make_selectors(log: RunLog, arguments: Sequence[str], configs: Path) -> tuple[LoggedSelector, LoggedSelector]:
    """Return the run's selector, and the one that `arguments` choose; twice the same object without arguments.

    Raises `OptionError` for a wrong option, `IncompatibleConfig` for a run with late updates, and Hydra's errors.
    """
    info, name, options = log.info, log.info.choices["selector"], dict(log.info.config["selector"])
    ranges.identifier(f"{info.folder}: the name of the selector", name)
    deadline = components.make(compose.Composed(info.config, info.choices, ()), "deadline", foreign=True)
    if deadline.carries:
        raise IncompatibleConfig(
            f"{info.folder} can't be replayed: with deadline={info.choices['deadline']} late updates arrive in later "
            "rounds, and the log does not hold when the server expected them"
        )

    def make(name: str, options: dict[str, object], *, foreign: bool) -> LoggedSelector:
        selector = components.build(options, "selector", f"selector={name}", foreign=foreign)
        return LoggedSelector(selector, name, log, deadline.cohort_size(log.cohort))

    logged_selector = make(name, options, foreign=True)
    if not arguments:
        return logged_selector, logged_selector
    typed_name = next((argument.partition("=")[2] for argument in arguments if argument.startswith("selector=")), None)
    chosen = compose.compose_group("selector", [*([] if typed_name else [f"selector={name}"]), *arguments], configs)
    if typed_name is None:  # the options of the run, where they were not typed
        typed_names = {option.partition("=")[0].removeprefix("selector.") for option in arguments}
        chosen |= {option: value for option, value in options.items() if option not in typed_names}
    return logged_selector, make(typed_name or name, chosen, foreign=typed_name is None)


def main(arguments: Sequence[str], configs: Path | None = None) -> int:
    """Replay a run's selector; return 1 if a round differs. configs: the groups' folder, None for ./configs."""
    folders = [name.removeprefix("run=") for name in arguments if name.startswith("run=") or "=" not in name]
    options = [option for option in arguments if "=" in option and not option.startswith("run=")]
    wrong_option = next((option for option in options if not option.startswith(("selector=", "selector."))), None)
    if len(folders) != 1 or not folders[0] or wrong_option is not None:
        raise OptionError(f"can't read {wrong_option or ' '.join(arguments) or 'nothing'!r}: {USAGE}")
    log = read_log(Path(folders[0]).absolute())
    logged_selector, candidate = make_selectors(log, options, configs or Path.cwd() / "configs")
    result = replay(log, logged_selector, candidate)
    if result.step is None:
        text = f"chooses the same clients as the run in all of its {result.rounds} rounds"
    else:
        n_common = len(set(result.chosen) & set(result.chosen_by_candidate))
        text = (
            f"differs from the run in round {result.step} of {result.rounds}: the run chose {list(result.chosen)}, "
            f"it chooses {list(result.chosen_by_candidate)} ({n_common} in common)"
        )
    sys.stdout.write(f"selector={candidate.name} {text}\n")
    return int(result.step is not None)
