"""Replay a run's selector from its log, without training: fedcohort replay <run folder>

    fedcohort replay <run folder> selector.gamma_scale=0.1              the run's selector with other options
    fedcohort replay <run folder> selector=flash selector.lam=2         another selector

The run's own selector must choose as the run did: this version of the code still does what the run did. Another one is
followed to the first round in which it chooses otherwise; from there on it would have had another model to ask about.
What the log doesn't hold can't be read again: the updates themselves (selector.variant=feddiverse_paper of HCSFed, and
selector.loss_check=true of FedPNS, which tries models), and rows of more than 64 numbers (HCSFed's sketches of larger
models; FedPNS where more clients arrive).
Exit code 0 where all choices are the same, 1 where a round differs, 2 where that can't be found out.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedcohort import ranges
from fedcohort.command.player import LoggedSelector
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError
from fedcohort.record.replayable import LoggedRound, RunLog, read
from fedcohort.startup import components, compose
from fedcohort.types import Advice, Probe, Selection

USAGE = "fedcohort replay <run folder> [selector=<word>] [selector.<option>=<value> ...]"


@dataclass(frozen=True)
class Replayed:
    """What a replay found.

    Attributes:
        rounds: of the log.
        step: the first round that differs, counting from 1, None where all are the same; then chosen is what the run
            chose, instead what the selector would have.
    """

    rounds: int
    step: int | None = None
    chosen: Sequence[int] = ()
    instead: Sequence[int] = ()


def replay(log: RunLog, own: LoggedSelector, other: LoggedSelector) -> Replayed:
    """Lead `other` through the log, and beside it `own`, the run's selector: its questions tell who was asked what.

    Raises `IncompatibleConfig` where `other` asks what wasn't asked, `CheckpointError` where `own` departs from the
    log.
    """
    for player in {id(player): player for player in (own, other)}.values():
        player.start(own.selector.needs)
    for now in log.rounds:
        ctx, own_probes = own.plan(now)
        mine = own.select(now, ctx, own_probes)
        if own is other:
            if not np.array_equal(mine.clients, now.chosen):
                return _differs(log, now, mine)
            own.observe(now, mine, own_probes)
            continue
        if not np.array_equal(mine.clients, now.chosen):
            raise CheckpointError(
                f"the run's own selector departs from {log.info.folder} at round {now.t + 1}, so nothing can be said "
                "of another: it ran with another version of fedcohort, or with a selector that has changed since"
            )
        ctx, wanted = other.plan(now)
        _check_requests(log, now, other.word, own_probes, wanted)
        theirs = other.select(now, ctx, wanted)
        if not np.array_equal(theirs.clients, now.chosen):
            return _differs(log, now, theirs)
        if not _same(own.observe(now, mine, own_probes), other.observe(now, theirs, wanted)):
            raise IncompatibleConfig(
                f"selector={other.word} chooses as the run up to round {now.t + 1}, then weighs the updates otherwise: "
                "the log knows no more of the model that comes of it"
            )
    return Replayed(len(log.rounds))


def _differs(log: RunLog, now: LoggedRound, selection: Selection) -> Replayed:
    return Replayed(len(log.rounds), now.t + 1, now.chosen.tolist(), selection.clients.tolist())


def _check_requests(
    log: RunLog, now: LoggedRound, word: str, own_probes: Sequence[Probe], wanted: Sequence[Probe]
) -> None:
    """A NaN in the log may be an answer, or none: only what the run's own selector asked is known."""
    for probe in wanted:
        same = [known for known in own_probes if known.signal == probe.signal and known.options == probe.options]
        if not same or not np.isin(probe.clients, same[0].clients).all():
            options = "".join(f" {name}={value}" for name, value in probe.options.items())
            raise IncompatibleConfig(
                f"selector={word} asks for {probe.signal}{options} of clients in round {now.t + 1} of whom the log of "
                f"{log.info.folder} doesn't have it"
            )


def _same(a: Advice | None, b: Advice | None) -> bool:
    if a is None or b is None:
        return a is b
    pairs = ((a.keep, b.keep), (a.weights, b.weights))
    return a.absolute == b.absolute and all(
        x is y or (x is not None and y is not None and np.array_equal(x, y)) for x, y in pairs
    )


def players(log: RunLog, words: Sequence[str], configs: Path) -> tuple[LoggedSelector, LoggedSelector]:
    """The run's own selector, and the one that `words` name; twice the same where they name none.

    configs: the folder of the groups. Raises `OptionError`, and Hydra's errors for words that it can't compose.
    """
    info = log.info
    word, node = info.choices["selector"], dict(info.config["selector"])
    ranges.identifier(f"{info.folder}: the name of the selector", word)
    cohort = components.make(compose.Composed(info.config, info.choices, ()), "deadline", foreign=True).ask(log.cohort)
    own = LoggedSelector(components.build(node, "selector", f"selector={word}", foreign=True), word, log, cohort)
    if not words:
        return own, own
    typed = next((each.partition("=")[2] for each in words if each.startswith("selector=")), None)
    fresh = compose.part_of("selector", [*([] if typed else [f"selector={word}"]), *words], configs)
    if typed is None:  # the run's options, where they weren't typed
        kept = set(node) - {each.partition("=")[0].removeprefix("selector.") for each in words}
        fresh |= {name: node[name] for name in kept}
    word = typed or word
    return own, LoggedSelector(
        components.build(fresh, "selector", f"selector={word}", foreign=typed is None), word, log, cohort
    )


def describe(found: Replayed, word: str) -> str:
    """The result in one line."""
    if found.step is None:
        return f"selector={word} chooses the same clients as the run in all of its {found.rounds} rounds"
    common = len(set(found.chosen) & set(found.instead))
    return (
        f"selector={word} differs from the run in round {found.step} of {found.rounds}: the run chose "
        f"{list(found.chosen)}, it chooses {list(found.instead)} ({common} in common)"
    )


def main(words: Sequence[str], configs: Path | None = None) -> int:
    """The command; raises what `in_one_line` puts in one line. configs: the groups' folder, None for the one here."""
    named = [word for word in words if word.startswith("run=") or "=" not in word]
    folders, rest = [word.removeprefix("run=") for word in named], [word for word in words if word not in named]
    wrong = next((word for word in rest if not word.startswith(("selector=", "selector."))), None)
    if len(folders) != 1 or not folders[0] or wrong is not None:
        raise OptionError(f"can't read {wrong or ' '.join(words) or 'nothing'!r}: {USAGE}")
    log = read(Path(folders[0]).absolute())
    own, other = players(log, rest, configs or Path.cwd() / "configs")
    found = replay(log, own, other)
    sys.stdout.write(f"{describe(found, other.word)}\n")
    return int(found.step is not None)
