"""Combinations that are refused at start-up, with the reason, and what is said of those that are legal but odd.

What is known of a run is in `startup/facts.py`; what a part wants, prefers or has to remark stands in its own file,
with the sentence.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.part import CLASSES, PROXY, Facts, Part, Want
from fedcohort.round.guard import prefixed
from fedcohort.round.parts import Parts, Populations
from fedcohort.signal.base import find, unknowable

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw
    from fedcohort.model.base import Model

# Whose parts are asked, in this order, and whose of them read signals
GROUPS = ("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device", "augmentation")
READERS = ("selector", "agg", "samples", "deadline")


def check(parts: Parts, choices: Mapping[str, str], known: Facts) -> None:
    """Raise `IncompatibleConfig` at the first want that isn't met; choices: each group's word."""
    wanted: list[tuple[str, Want]] = []
    for group in GROUPS:
        with prefixed(getattr(parts, group)):
            wanted += [(group, want) for want in _sort(getattr(parts, group).wants, choices[group])]
    for group in READERS:
        with prefixed(getattr(parts, group)):
            signals = [find(word) for word in sorted(getattr(parts, group).needs)]
        wanted += [(group, signal.wants) for signal in signals if signal.wants is not None]
    for group, want in wanted:
        if want.holds(known) is False:
            raise IncompatibleConfig(say(want, f"{group}={choices[group]}", choices, known.absence))


def say(want: Want, who: str, choices: Mapping[str, str], absence: Sequence[str] | None = None) -> str:
    """Return the sentence of a want that isn't met; absence: as in `Facts`."""
    words = {group: f"{group}={word}" for group, word in choices.items()}
    return want.sentence.format(**words, who=who, everybody=" and ".join(absence or ()))


def check_targets(parts: Mapping[str, Part], choices: Mapping[str, str], raw: "Raw") -> None:
    """Raise `IncompatibleConfig` where who deals or changes the data goes by classes that samples don't have.

    parts: by group.
    """
    for group, part in parts.items():
        if CLASSES in part.wants and not raw.targets.single:
            raise IncompatibleConfig(say(CLASSES, f"{group}={choices[group]}", choices))


def check_model(model: "Model", word: str, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` where the model reads other inputs than the data have, or says something else."""
    single, name = federation.targets.single, f"dataset={federation.name}"
    if model.reads_symbols != federation.is_symbolic:
        reads, has = ("symbols", "numbers") if model.reads_symbols else ("numbers", "sequences of symbols")
        fitting = "char_lstm" if single else "word_lstm"
        way_out = "" if model.reads_symbols else f": choose model={fitting}"
        raise IncompatibleConfig(f"model={word} reads {reads}, and the inputs of {name} are {has}{way_out}")
    if model.per_position == single:
        says, have, fitting = "one class of a sequence", "a target for each place", "word_lstm"
        if model.per_position:
            says, have, fitting = "one for each place of a sequence", "one class", "char_lstm"
        raise IncompatibleConfig(f"model={word} says {says}, and samples of {name} have {have}: choose model={fitting}")


def check_batches(network: "nn.Module", batch: int | None, federation: "Federation") -> "nn.Module":
    """Return the network, or raise `IncompatibleConfig` where batch norm has one number of a channel in a batch."""
    from fedcohort.flat import norms_one  # noqa: PLC0415 - torch is imported once the words are right

    if batch == 1 and not norms_one(network, federation.server_test.x[:1]):
        raise IncompatibleConfig(
            "client.batch=1 leaves batch norm one number of a channel, which is no spread to norm by: choose "
            "client.batch=2 or more, or model.norm=group where the model has it"
        )
    return network


def check_clock(known: Facts, choices: Mapping[str, str], virtual_s: float | None) -> None:
    """Raise `IncompatibleConfig` where a budget of virtual seconds (`until.virtual_s`) could never be reached."""
    if virtual_s is not None and not known.time_passes:
        raise IncompatibleConfig(
            f"until.virtual_s={virtual_s:.10g} would never be reached: no time passes from round to round with "
            f"device={choices['device']} and deadline.window_s=0. Choose another device, or until.bytes"
        )


def _sort(wants: Iterable[Want], word: str) -> list[Want]:
    """Sort wants into an order that doesn't depend on the process.

    Raises `IncompatibleConfig` for what isn't a `Want`.
    """
    if odd := next((want for want in wants if not isinstance(want, Want)), None):
        raise IncompatibleConfig(f"{word} wants or prefers {odd!r}, which is no Want (fedcohort/part.py)")
    return sorted(wants, key=lambda want: want.sentence)


def check_population(
    parts: Parts, choices: Mapping[str, str], known: Facts, cohort: int, federation: "Federation"
) -> None:
    """Raise `IncompatibleConfig` or `OptionError` where cohort or selector ask for more clients than there are."""
    if cohort > federation.n_clients:
        raise IncompatibleConfig(
            f"cohort={cohort} exceeds the {federation.n_clients} clients of dataset={federation.name}"
        )
    if (asked := parts.deadline.ask(cohort)) > federation.n_clients:
        raise IncompatibleConfig(
            f"deadline={choices['deadline']} asks {asked} clients for cohort={cohort}, which exceeds the "
            f"{federation.n_clients} clients of dataset={federation.name}: lower deadline.factor, or cohort"
        )
    check(parts, choices, known)
    try:
        population = Populations.over(federation, cohort).asking(parts.deadline)
        parts.selector.init(population.of(parts.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def remarks(
    parts: Parts,
    choices: Mapping[str, str],
    requires: Mapping[str, Mapping[str, Any]],
    known: Facts,
    typed: Sequence[str] = (),
) -> list[str]:
    """Return lines about what is legal and not what it looks like, which are said once at the start.

    Args:
        parts: of the run.
        choices: the word of each group.
        requires: what aliases stand for, by group.
        known: the facts of the run, its data and its network among them.
        typed: the user's words.
    """
    idle = [*_idle_epochs(parts, typed), *_idle_partial_work(parts, choices, requires)]
    idle += [*_unheard_lies(parts, choices), *_idle_proxy(parts, choices)]
    return [*_yardsticks(parts, choices), *_cautions(parts, choices, known), *idle, *_own(parts, choices)]


def _yardsticks(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    known = {group: unknowable(getattr(parts, group).needs) for group in READERS}
    return [
        f"{group}={choices[group]} is a yardstick, no method: it reads {', '.join(words)}, which no server can know"
        for group, words in known.items()
        if words
    ]


def _idle_epochs(parts: Parts, typed: Sequence[str]) -> list[str]:
    epochs = [word for word in typed if word.startswith("client.epochs=")]
    if parts.client.steps is None or not epochs:
        return []
    return [f"{epochs[-1]} has no effect: client.steps={parts.client.steps} is what clients do (null for epochs)"]


def _idle_proxy(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    if not parts.proxy.holds or PROXY in parts.agg.wants:
        return []
    return [f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it"]


def _own(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    """Return what parts have to say of their own options: `remarks(word)`, word: the one that chose the part."""
    found: list[str] = []
    for group in (field.name for field in fields(parts)):
        found += getattr(parts, group).remarks(choices[group])
    return found


def _unheard_lies(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    lies = parts.attack.about
    if not lies or lies & parts.needs():
        return []
    what = ", ".join(sorted(lies))
    return [f"attack={choices['attack']} has no effect: neither the selector nor the aggregator reads {what}"]


def _cautions(parts: Parts, choices: Mapping[str, str], known: Facts) -> list[str]:
    """Return lines where parts work, but outside what their papers show; one for all who prefer the same."""
    failed: dict[Want, list[str]] = {}
    for group in GROUPS:
        for want in _sort(getattr(parts, group).prefers, choices[group]):
            if want.holds(known) is False:
                failed.setdefault(want, []).append(f"{group}={choices[group]}")
    return [say(want, " and ".join(who), choices, known.absence) for want, who in failed.items()]


def _idle_partial_work(
    parts: Parts, choices: Mapping[str, str], requires: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    units, name = (parts.client.epochs, "epochs") if parts.client.steps is None else (parts.client.steps, "steps")
    if not parts.deadline.partial_work or (parts.deadline.bounded and units > 1):
        return []
    if parts.deadline.bounded:
        return [f"deadline.partial_work=true has no effect with client.{name}=1, of which no part can be done"]
    line = f"deadline.partial_work=true has no effect with deadline={choices['deadline']}, where everybody finishes"
    aliases = [f"{group}={choices[group]}" for group, wanted in requires.items() if "deadline.partial_work" in wanted]
    return [line + "".join(f"; {word} is meant with a deadline (deadline=fixed)" for word in aliases)]
