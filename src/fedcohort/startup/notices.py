"""Notices at the start of a run, about valid options that have no effect, or a surprising one."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from fedcohort.component import PROXY, Facts, Requirement
from fedcohort.signal.base import unknowable_signals
from fedcohort.startup.requirements import GROUPS, READERS, requirement_message, sort_requirements

EVALUATIONS = {"every": "", "clients_every": " on the clients"}  # options of the node `eval`, and where they evaluate


def list_notices(choices: Mapping[str, str], facts: Facts, typed: Sequence[str] = ()) -> list[str]:
    """Return the notices of a run.

    Args:
        choices: the choice in each group.
        facts: the run, including data and network.
        typed: the overrides that the user typed.
    """
    lines = [
        f"{group}={choices[group]} is an oracle, which no server could run: it reads {', '.join(signals)}"
        for group in READERS
        if (signals := unknowable_signals(getattr(facts.components, group).needs))
    ]
    unmet_recommendations: dict[Requirement, list[str]] = {}  # recommendations of several components may be the same
    for group in GROUPS:
        for recommendation in sort_requirements(getattr(facts.components, group).recommendations, choices[group]):
            if recommendation.holds(facts) is False:
                unmet_recommendations.setdefault(recommendation, []).append(f"{group}={choices[group]}")
    lines += [
        requirement_message(item, " and ".join(options), choices, facts)
        for item, options in unmet_recommendations.items()
    ]
    lines += _without_effect(choices, facts, typed)
    for group in (field.name for field in fields(facts.components)):
        lines += getattr(facts.components, group).notices(choices[group])
    return lines


def _without_effect(choices: Mapping[str, str], facts: Facts, typed: Sequence[str]) -> list[str]:
    """Return a notice for each option that has no effect in this run."""
    components, lines = facts.components, []
    epochs = [override for override in typed if override.startswith("client.epochs=")]
    if components.client.steps is not None and epochs:
        lines.append(f"{epochs[-1]} has no effect: client.steps={components.client.steps} is set (null for epochs)")
    units, name = (
        (components.client.epochs, "epochs") if components.client.steps is None else (components.client.steps, "steps")
    )
    if components.deadline.partial_work and not components.deadline.bounded:
        required = facts.config["requires"]
        aliases = [f"{group}={choices[group]}" for group in required if "deadline.partial_work" in required[group]]
        lines.append(
            f"deadline.partial_work=true has no effect with deadline={choices['deadline']}, where all clients finish"
            + "".join(f"; {alias} is intended for use with a deadline (deadline=fixed)" for alias in aliases)
        )
    elif components.deadline.partial_work and units == 1:
        lines.append(f"deadline.partial_work=true has no effect with client.{name}=1, which can't be done in part")
    if components.attack.about and not components.attack.about & components.needs():
        signals = ", ".join(sorted(components.attack.about))
        lines.append(
            f"attack={choices['attack']} has no effect: neither the selector nor the aggregator reads {signals}"
        )
    if components.proxy.has_inputs and PROXY not in components.agg.requirements:
        lines.append(f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it")
    return lines


def list_unmeasured(config: Mapping[str, Any]) -> list[str]:
    """Return a notice for evaluations whose interval exceeds the rounds of the run; config: composed."""
    rounds = config["rounds"]
    unmeasured = [name for name in EVALUATIONS if config["eval"][name] > rounds]
    if not unmeasured:
        return []
    options = " and ".join(f"eval.{name}={config['eval'][name]}" for name in unmeasured)
    exceed = "exceeds" if len(unmeasured) == 1 else "exceed"
    where = EVALUATIONS[unmeasured[0]]
    return [f"{options} {exceed} rounds={rounds}: only the first model is evaluated{where}, before any training"]
