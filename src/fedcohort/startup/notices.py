"""Notices at the start of a run: options that are legal and have another effect than they seem to have, or none."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from fedcohort.component import PROXY, Facts, Requirement
from fedcohort.signal.base import unknowable
from fedcohort.startup.requirements import GROUPS, READERS, explain, in_order

EVALUATIONS = {"every": "", "clients_every": " on the clients"}  # options of the node `eval`, and what they are of


def list_notices(choices: Mapping[str, str], facts: Facts, typed: Sequence[str] = ()) -> list[str]:
    """Return the notices of a run.

    Args:
        choices: the choice in each group.
        facts: the run, with its data and its network.
        typed: what the user typed.
    """
    lines = [
        f"{group}={choices[group]} is a yardstick, no method: it reads {', '.join(signals)}, which no server can know"
        for group in READERS
        if (signals := unknowable(getattr(facts.parts, group).needs))
    ]
    unmet: dict[Requirement, list[str]] = {}  # components work, but outside what their papers show
    for group in GROUPS:
        for requirement in in_order(getattr(facts.parts, group).recommendations, choices[group]):
            if requirement.holds(facts) is False:
                unmet.setdefault(requirement, []).append(f"{group}={choices[group]}")
    lines += [explain(requirement, " and ".join(who), choices, facts) for requirement, who in unmet.items()]
    lines += _without_effect(choices, facts, typed)
    for group in (field.name for field in fields(facts.parts)):
        lines += getattr(facts.parts, group).notices(choices[group])
    return lines


def _without_effect(choices: Mapping[str, str], facts: Facts, typed: Sequence[str]) -> list[str]:
    """Return a line for each option that changes nothing in this run."""
    parts, lines = facts.parts, []
    epochs = [word for word in typed if word.startswith("client.epochs=")]
    if parts.client.steps is not None and epochs:
        lines.append(
            f"{epochs[-1]} has no effect: client.steps={parts.client.steps} is what clients do (null for epochs)"
        )
    units, name = (parts.client.epochs, "epochs") if parts.client.steps is None else (parts.client.steps, "steps")
    if parts.deadline.partial_work and not parts.deadline.bounded:
        required = facts.config["requires"]
        aliases = [f"{group}={choices[group]}" for group in required if "deadline.partial_work" in required[group]]
        lines.append(
            f"deadline.partial_work=true has no effect with deadline={choices['deadline']}, where all clients finish"
            + "".join(f"; {alias} is meant with a deadline (deadline=fixed)" for alias in aliases)
        )
    elif parts.deadline.partial_work and units == 1:
        lines.append(f"deadline.partial_work=true has no effect with client.{name}=1, of which no part can be done")
    if parts.attack.about and not parts.attack.about & parts.needs():
        signals = ", ".join(sorted(parts.attack.about))
        lines.append(
            f"attack={choices['attack']} has no effect: neither the selector nor the aggregator reads {signals}"
        )
    if parts.proxy.holds and PROXY not in parts.agg.requirements:
        lines.append(f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it")
    return lines


def list_unmeasured(config: Mapping[str, Any]) -> list[str]:
    """Return a notice for evaluations that are further apart than the run has rounds; config: composed."""
    rounds = config["rounds"]
    late = [name for name in EVALUATIONS if config["eval"][name] > rounds]
    if not late:
        return []
    options = " and ".join(f"eval.{name}={config['eval'][name]}" for name in late)
    exceed = "exceeds" if len(late) == 1 else "exceed"
    of_what = EVALUATIONS[late[0]]
    return [f"{options} {exceed} rounds={rounds}: only the first model is evaluated{of_what}, before any training"]
