"""Combinations that are refused at start-up, with the reason, and what is said of those that are legal but odd.

The facts stand here; what a part wants, prefers, can do instead or has to remark stands in its own file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.flat import has_batch_norm
from fedcohort.round.parts import Parts, Populations
from fedcohort.signal.base import find, unknowable

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation

REASONS = {
    "timed_device": "{who} reads how long clients take, but device=instant takes no time: "
    "choose device=shifted_exponential",
    "plain_client": "{who} reads a gradient off the displacement of the model, which only holds for plain SGD: choose "
    "client=sgd without momentum, weight_decay and clip",
    "sgd_client": "{who} takes 1 / client.lr for a Lipschitz constant, which only holds for SGD: choose client=sgd",
    "attributes": "{who} reads how many samples of each class and attribute clients have, but {dataset} knows "
    "no attributes: choose dataset=cmnist",
    "linear_client": "{who} trains a factor of the update by changing gradients, which only holds where steps are "
    "linear in them: choose client=sgd",
    "undecayed_client": "{who} keeps local training within what is sent, but client.weight_decay moves every "
    "parameter: choose client.weight_decay=0, or a codec that works on finished updates (codec=subsample, codec=quant, "
    "or codec.mode=posthoc for codec=lowrank)",
    "free_update": "{who} compares or corrects clients in all parameters, but the codec keeps each client's training "
    "within a random part of its own: choose a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
    "given_labels": "{who} learns which labels to trust, and so does the objective from w_t's own predictions "
    "({objective}): choose another objective",
    "proxy": "{who} teaches networks on inputs that the server holds, and it holds none (proxy=none): choose "
    "proxy=dataset, proxy=client_heldout or proxy=noise",
    "client_val": "{who} learns from each client's V_k, and clients have none to speak of (split.client_val=0 leaves "
    "two samples each): choose split.client_val in (0, 0.5]",
    "finished_update": "{who} leaves tensors out of updates, and the codec trains each client for its own upload: "
    "choose codec=none, or a codec that works on finished updates (codec=subsample, codec=quant, or codec.mode=posthoc "
    "for codec=lowrank)",
    "relative_advice": "{who} works out weights of its own, which sum to what its method says, and {selector} advises "
    "weights whose very sum counts (an estimate without bias): choose agg=fedavg, or a form of the selector that "
    "advises none (selector.agg=fedavg where it has one)",
    "any_work": "{who} asks some clients for several times the local work, and {agg} stands for a number of steps that "
    "is everybody's: choose another aggregator",
}

CAUTIONS = {
    "linear_client": "{who} divides updates by how far the local optimizer goes, which no number tells for {client}: "
    "its steps are counted instead, which the paper doesn't cover",
    "plain_server": "{who} makes a step that lowers everybody's loss; {server} makes another one of it",
    "clean_labels": "high losses draw {who} to clients, and wrong labels ({label_noise}) make losses high, too",
    "everybody": "{who} changes the weights of those who arrive alone, and so leans towards clients that train often: "
    "choose its other form (unbiased=true, where clients are drawn uniformly, or sync=mass), or cohort=clients",
    "equal_absence": "{who} compares a client's loss with that of when it last came: who stays away longer seems to "
    "learn faster, and gains weight (cohort=clients has everybody come every round)",
    "no_batch_norm": "the network has batch norm, whose statistics are averaged over samples whatever {who} makes of "
    "the parameters: they are not quite those of the model that comes of it (group norm has none)",
}


def check(
    parts: Parts, choices: Mapping[str, str], client_val: float, requires: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise `IncompatibleConfig` where the parts can't work together, whatever the data.

    choices: the word of each group. client_val: `split.client_val`. requires: what aliases stand for, by group.
    """
    holds = {
        "timed_device": parts.device.timed,
        "plain_client": parts.client.plain,
        "sgd_client": parts.client.linear,
        "linear_client": parts.client.linear,
        "undecayed_client": parts.client.weight_decay == 0,
        "free_update": not parts.codec.hooks,
        "given_labels": not parts.objective.uses_reference,
        "proxy": parts.proxy.holds,
        "client_val": client_val > 0,
        "finished_update": not parts.codec.hooks,
        "relative_advice": not getattr(parts.selector, "absolute", False),
        "any_work": not any("client.steps" in wanted for wanted in requires.values()),
    }
    _refuse(parts, choices, holds)


def _refuse(parts: Parts, choices: Mapping[str, str], holds: Mapping[str, bool]) -> None:
    """Raise `IncompatibleConfig` at the first fact in `holds` that a part wants and that isn't so."""
    wanted: list[tuple[str, str | None]] = []
    for group in ("selector", "agg", "codec"):
        wanted += [(group, fact) for fact in sorted(getattr(getattr(parts, group), "wants", ()))]
    for group in ("selector", "agg"):
        wanted += [(group, find(word).wants) for word in sorted(getattr(parts, group).needs)]
    words = {group: f"{group}={word}" for group, word in choices.items()}
    for group, fact in wanted:
        who = words[group]
        if fact is not None and fact not in REASONS:
            raise IncompatibleConfig(f"{who} wants {fact!r}, which is no fact; there are: {', '.join(sorted(REASONS))}")
        if fact is not None and not holds.get(fact, True):
            way_out = getattr(getattr(parts, group), "ways_out", {}).get(fact)
            reason = REASONS[fact].format(**{**words, "who": who})
            raise IncompatibleConfig(f"{reason}, or {way_out}" if way_out else reason)


def check_population(parts: Parts, choices: Mapping[str, str], cohort: int, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` or `OptionError` where cohort or selector ask for more clients than there are."""
    if cohort > federation.n_clients:
        raise IncompatibleConfig(
            f"cohort={cohort} exceeds the {federation.n_clients} clients of dataset={federation.name}"
        )
    holds = {
        "attributes": federation.group_counts is not None,
        "client_val": bool((np.diff(federation.val.offsets) > 0).all()),
    }
    _refuse(parts, choices, holds)
    try:
        parts.selector.init(Populations.over(federation, cohort).of(parts.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def facts(parts: Parts, cohort: int, federation: "Federation", network: "nn.Module") -> dict[str, bool]:
    """What parts may prefer (`CAUTIONS`), and whether it is so in this run."""
    asked = cohort >= federation.n_clients or getattr(parts.selector, "uncapped", False)
    everybody = asked and getattr(parts.availability, "always", False) and not parts.deadline.bounded
    return {
        "linear_client": parts.client.linear,
        "plain_server": getattr(parts.server, "plain", False),
        "clean_labels": not federation.noise_rate.any(),
        "everybody": everybody,
        "equal_absence": everybody,
        "no_batch_norm": not has_batch_norm(network),
    }


def remarks(
    parts: Parts,
    choices: Mapping[str, str],
    requires: Mapping[str, Mapping[str, Any]],
    holds: Mapping[str, bool],
    typed: Sequence[str] = (),
) -> list[str]:
    """What is legal and not what it looks like, said once at the start.

    requires: what aliases stand for, by group. holds: `facts` of the run. typed: the user's words. Raises
    `IncompatibleConfig` where a part prefers what is no fact.
    """
    idle = [*_idle_epochs(parts, typed), *_idle_partial_work(parts, choices, requires)]
    idle += [*_unheard_lies(parts, choices), *_idle_proxy(parts, choices)]
    return [*_yardsticks(parts, choices), *_cautions(parts, choices, holds), *idle, *_own(parts, choices)]


def _yardsticks(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    known = {group: unknowable(getattr(parts, group).needs) for group in ("selector", "agg")}
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
    if not parts.proxy.holds or "proxy" in parts.agg.wants:
        return []
    return [f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it"]


def _own(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    """What parts have to say of their own options: `remarks(word)`, of the word by which the part was chosen."""
    found = []
    for group in (field.name for field in fields(parts)):
        part = getattr(parts, group)
        found += list(part.remarks(choices[group])) if hasattr(part, "remarks") else []
    return found


def _unheard_lies(parts: Parts, choices: Mapping[str, str]) -> list[str]:
    lies = parts.attack.about
    if not lies or lies & (parts.selector.needs | parts.agg.needs):
        return []
    what = ", ".join(sorted(lies))
    return [f"attack={choices['attack']} has no effect: neither the selector nor the aggregator reads {what}"]


def _cautions(parts: Parts, choices: Mapping[str, str], holds: Mapping[str, bool]) -> list[str]:
    """Where parts work, but outside what their papers show; one line for all whom the same fact fails."""
    words = {group: f"{group}={word}" for group, word in choices.items()}
    failed: dict[str, list[str]] = {}
    for group in ("selector", "agg", "objective"):
        for fact in sorted(getattr(getattr(parts, group), "prefers", frozenset())):
            if fact not in holds:
                known = ", ".join(sorted(holds))
                raise IncompatibleConfig(f"{words[group]} prefers {fact!r}, which is no fact; there are: {known}")
            if not holds[fact]:
                failed.setdefault(fact, []).append(words[group])
    return [CAUTIONS[fact].format(**{**words, "who": " and ".join(who)}) for fact, who in sorted(failed.items())]


def _idle_partial_work(
    parts: Parts, choices: Mapping[str, str], requires: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    if parts.deadline.bounded or not parts.deadline.partial_work:
        return []
    line = f"deadline.partial_work=true has no effect with deadline={choices['deadline']}, where everybody finishes"
    meant = [f"{group}={choices[group]}" for group, wanted in requires.items() if "deadline.partial_work" in wanted]
    return [line + "".join(f"; {word} is meant with a deadline (deadline=fixed)" for word in meant)]
