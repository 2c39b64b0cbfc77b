"""Replay a run's selector from its log, without training: fedcohort replay <run folder>

    fedcohort replay <run folder> selector.gamma_scale=0.1              the run's selector with other options
    fedcohort replay <run folder> selector=flash selector.lam=2         another selector

The run's own selector must choose as the run did: this version of the code still does what the run did. Another one is
followed to the first round in which it chooses otherwise; from there on it would have had another model to ask about.
What the log doesn't hold can't be read again: the updates themselves (selector.variant=feddiverse_paper of HCSFed, and
selector.loss_check=true of FedPNS, which tries models), and rows of more than 64 numbers (HCSFed's sketches of larger
models; FedPNS where more clients arrive).
Exit code 0 if all choices are the same, 1 if a round differs, 2 where that can't be found out.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedcohort import ranges
from fedcohort.command.logged_selector import LoggedSelector
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError
from fedcohort.record.replayable import LoggedRound, RunLog, read_log
from fedcohort.startup import components, compose
from fedcohort.types import Advice, Probe, Selection

USAGE = "fedcohort replay <run folder> [selector=<option>] [selector.<option>=<value> ...]"


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


def replay(log: RunLog, original: LoggedSelector, candidate: LoggedSelector) -> Replayed:
    """Replay `candidate` round by round, together with the run's selector, whose queries the log can answer.

    Args:
        log: log of the run.
        original: the selector of the run.
        candidate: the selector that is compared with the run; may be the same object.

    Raises:
        IncompatibleConfig: if `candidate` queries what the run did not query.
        CheckpointError: if `original` departs from the log.
    """
    for selector in {id(selector): selector for selector in (original, candidate)}.values():
        selector.start(original.selector.needs)
    for round in log.rounds:
        ctx, logged_probes = original.plan(round)
        selection = original.select(round, ctx, logged_probes)
        differs = not np.array_equal(selection.clients, round.chosen)
        if original is candidate:
            if differs:
                return _describe_difference(log, round, selection)
            original.observe(round, selection, logged_probes)
            continue
        if differs:
            raise CheckpointError(
                f"replaying {log.info.folder} with its own selector gives another cohort in round {round.t + 1}, so a "
                "replay with another selector would mean nothing: fedcohort or the selector has changed since the run"
            )
        ctx, probes = candidate.plan(round)
        _check_queries(log, round, candidate.name, logged_probes, probes)
        choice = candidate.select(round, ctx, probes)
        if not np.array_equal(choice.clients, round.chosen):
            return _describe_difference(log, round, choice)
        if not _equal(original.observe(round, selection, logged_probes), candidate.observe(round, choice, probes)):
            raise IncompatibleConfig(
                f"selector={candidate.name} chooses as the run up to round {round.t + 1}, then weighs the updates "
                "differently, and the log does not hold the resulting model"
            )
    return Replayed(len(log.rounds))


def _describe_difference(log: RunLog, round: LoggedRound, selection: Selection) -> Replayed:
    return Replayed(len(log.rounds), round.t + 1, round.chosen.tolist(), selection.clients.tolist())


def _check_queries(
    log: RunLog, round: LoggedRound, name: str, logged: Sequence[Probe], probes: Sequence[Probe]
) -> None:
    """Raise `IncompatibleConfig` for a query that the run did not make.

    A NaN in the log does not show whether the client was queried.

    Args:
        log: log of the run.
        round: the round of the queries.
        name: name of the selector that makes them.
        logged: queries of the run's selector.
        probes: queries of the selector that is replayed.
    """
    for probe in probes:
        match = [query for query in logged if query.signal == probe.signal and query.options == probe.options]
        if not match or not np.isin(probe.clients, match[0].clients).all():
            options = "".join(f" {option}={value}" for option, value in probe.options.items())
            raise IncompatibleConfig(
                f"selector={name} queries {probe.signal}{options} in round {round.t + 1} from clients for which the "
                f"log of {log.info.folder} has no value"
            )


def _equal(a: Advice | None, b: Advice | None) -> bool:
    if a is None or b is None:
        return a is b
    pairs = ((a.keep, b.keep), (a.weights, b.weights))
    return a.absolute == b.absolute and all(
        x is y or (x is not None and y is not None and np.array_equal(x, y)) for x, y in pairs
    )


def make_selectors(log: RunLog, words: Sequence[str], configs: Path) -> tuple[LoggedSelector, LoggedSelector]:
    """Return the run's selector, and the one that `words` choose; twice the same object where there are no words.

    Args:
        log: log of the run.
        words: typed options of the selector.
        configs: folder of the config groups.

    Raises:
        OptionError: for a wrong option. Hydra's errors, for words that it can't compose.
    """
    info = log.info
    name, options = info.choices["selector"], dict(info.config["selector"])
    ranges.identifier(f"{info.folder}: the name of the selector", name)
    cohort = components.make(compose.Composed(info.config, info.choices, ()), "deadline", foreign=True).cohort_size(
        log.cohort
    )

    def make(name: str, options: dict[str, object], *, foreign: bool) -> LoggedSelector:
        selector = components.build(options, "selector", f"selector={name}", foreign=foreign)
        return LoggedSelector(selector, name, log, cohort)

    original = make(name, options, foreign=True)
    if not words:
        return original, original
    typed = next((word.partition("=")[2] for word in words if word.startswith("selector=")), None)
    chosen = compose.compose_group("selector", [*([] if typed else [f"selector={name}"]), *words], configs)
    if typed is None:  # the options of the run, where they were not typed
        unchanged_options = set(options) - {word.partition("=")[0].removeprefix("selector.") for word in words}
        chosen |= {option: options[option] for option in unchanged_options}
    return original, make(typed or name, chosen, foreign=typed is None)


def describe(result: Replayed, name: str) -> str:
    """Return the result in one line. name: of the selector."""
    if result.step is None:
        return f"selector={name} chooses the same clients as the run in all of its {result.rounds} rounds"
    common = len(set(result.chosen) & set(result.chosen_by_candidate))
    return (
        f"selector={name} differs from the run in round {result.step} of {result.rounds}: the run chose "
        f"{list(result.chosen)}, it chooses {list(result.chosen_by_candidate)} ({common} in common)"
    )


def main(words: Sequence[str], configs: Path | None = None) -> int:
    """Run the command; return 1 if a round differs. configs: the groups' folder, None for the one here."""
    folders = [word.removeprefix("run=") for word in words if word.startswith("run=") or "=" not in word]
    options = [word for word in words if "=" in word and not word.startswith("run=")]
    wrong = next((word for word in options if not word.startswith(("selector=", "selector."))), None)
    if len(folders) != 1 or not folders[0] or wrong is not None:
        raise OptionError(f"can't read {wrong or ' '.join(words) or 'nothing'!r}: {USAGE}")
    log = read_log(Path(folders[0]).absolute())
    original, candidate = make_selectors(log, options, configs or Path.cwd() / "configs")
    result = replay(log, original, candidate)
    sys.stdout.write(f"{describe(result, candidate.name)}\n")
    return int(result.step is not None)
