"""List the notices at the start of a run, about valid options that have no effect, or a surprising one."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcohort.component import PROXY_INPUTS, Facts, Requirement
from fedcohort.signal.base import QueriedSignal, Reported, Static, find_oracle_signals, find_signal
from fedcohort.startup import requirements

# options of the node `eval`, and where they evaluate
EVALUATION_TEXT_BY_OPTION = {"every": "", "clients_every": " on the clients"}


def list_notices(choices: Mapping[str, str], facts: Facts, typed_overrides: Sequence[str] = ()) -> list[str]:
    """Return the notices about valid options that have no effect, or a surprising one, in a run.

    Args:
        choices: the choice in each group.
        facts: the run, including data and network.
        typed_overrides: the overrides that the user typed.
    """
    notices = []
    for group in requirements.SIGNAL_READING_GROUPS:
        if signals := ", ".join(find_oracle_signals(getattr(facts.components, group).needs)):
            notices.append(f"{group}={choices[group]} is an oracle, which no server could run: it reads {signals}")
    unmet_recommendations: dict[Requirement, list[str]] = {}  # recommendations of several components may be the same
    for group in requirements.GROUPS_WITH_REQUIREMENTS:
        recommendations = getattr(facts.components, group).recommendations
        for recommendation in requirements.sort_requirements(recommendations, choices[group]):
            if recommendation.holds(facts) is False:
                unmet_recommendations.setdefault(recommendation, []).append(f"{group}={choices[group]}")
    for requirement, group_choices in unmet_recommendations.items():
        notices.append(requirements.format_requirement(requirement, " and ".join(group_choices), choices, facts))
    notices += _list_options_without_effect(choices, facts, typed_overrides)
    for group, component in vars(facts.components).items():
        notices += component.notices(choices[group])
    return notices


def _list_options_without_effect(choices: Mapping[str, str], facts: Facts, typed_overrides: Sequence[str]) -> list[str]:
    """Return a notice for each option that has no effect in this run.

    `choices` has the choice in each group, `facts` the run; `typed_overrides` are the overrides as typed.
    """
    components, client, notices = facts.components, facts.components.client, []
    epochs_overrides = [override for override in typed_overrides if override.startswith("client.epochs=")]
    if client.steps is not None and epochs_overrides:
        notices.append(f"{epochs_overrides[-1]} has no effect: client.steps={client.steps} is set (null for epochs)")
    local_work_unit = "epochs" if client.steps is None else "steps"
    n_local_work_units = getattr(client, local_work_unit)
    if components.deadline.partial_work and not components.deadline.bounded:
        requires = facts.config["requires"]
        aliases = [f"{group}={choices[group]}" for group in requires if "deadline.partial_work" in requires[group]]
        deadline_text = f"deadline={choices['deadline']}, where all clients finish"
        alias_hints = [f"{alias} is intended for use with a deadline (deadline=fixed)" for alias in aliases]
        notices.append("; ".join([f"deadline.partial_work=true has no effect with {deadline_text}", *alias_hints]))
    elif components.deadline.partial_work and n_local_work_units == 1:
        local_work_text = f"client.{local_work_unit}=1, which can't be done in part"
        notices.append(f"deadline.partial_work=true has no effect with {local_work_text}")
    if components.attack.falsified_signals and not components.attack.falsified_signals & components.needed_signals():
        falsified_signals = ", ".join(sorted(components.attack.falsified_signals))
        message_start = f"attack={choices['attack']} has no effect"
        notices.append(f"{message_start}: neither the selector nor the aggregator reads {falsified_signals}")
    if components.signal_noise.perturbs:
        signals = {k: find_signal(k) for k in sorted(components.needed_signals())}
        noiseless_signals = [k for k, signal in signals.items() if isinstance(signal, Static) and signal.bytes_up]
        if not any(isinstance(signal, Reported | QueriedSignal) and signal.bytes_up for signal in signals.values()):
            message_start = f"signal_noise={choices['signal_noise']} has no effect"
            notices.append(f"{message_start}: no component reads a reported number")
        elif noiseless_signals:
            notices.append(
                f"signal_noise={choices['signal_noise']} adds no noise to facts that clients send at registration: "
                f"privacy/epsilon does not cover {', '.join(noiseless_signals)}"
            )
    if components.proxy.has_inputs and PROXY_INPUTS not in components.agg.requirements:
        notices.append(f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it")
    decay_overrides = [override for override in typed_overrides if override.startswith("eval.average_decay=")]
    if decay_overrides and facts.config["eval"]["average"] == "none":
        notices.append(f"{decay_overrides[-1]} has no effect with eval.average=none: set eval.average=ema")
    return notices


def list_evaluation_notices(config: Mapping[str, Any]) -> list[str]:
    """Return a notice for each evaluation in `config` whose interval exceeds the rounds of the run."""
    n_rounds, notices = config["rounds"], []
    for eval_option, evaluation_text in EVALUATION_TEXT_BY_OPTION.items():
        if (eval_interval := config["eval"][eval_option]) > n_rounds:
            message_start = f"eval.{eval_option}={eval_interval} exceeds rounds={n_rounds}"
            notices.append(f"{message_start}: only the first model is evaluated{evaluation_text}, before any training")
    return notices
