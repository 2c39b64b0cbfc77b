"""Check the requirements of components on each other and on the data, and list the notices at the start of a run.

The messages of requirements and recommendations are in the components' files. Notices are about valid options that have
no effect, or a surprising one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from fedcohort.component import FORESEEN_SAMPLES, ONE_CLASS_PER_SAMPLE, PROXY_INPUTS, Component, Facts, Requirement
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.ledger import BYTES_PER_NUMBER
from fedcohort.round.components import Populations
from fedcohort.round.guard import name_component_of_errors
from fedcohort.signal.base import QueriedSignal, Reported, Static, find_signal, unknowable_signals

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw
    from fedcohort.model.base import Model

# Groups whose components may have requirements, in the order of the messages, and groups whose components read signals
GROUPS_WITH_REQUIREMENTS = (
    *("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device", "augmentation"),
)
SIGNAL_READERS = ("selector", "agg", "samples", "deadline")
EVALUATIONS = {"every": "", "clients_every": " on the clients"}  # options of the node `eval`, and where they evaluate


def check(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` at the first requirement that does not hold.

    Args:
        choices: the choice in each group.
        facts: the run, as far as it is known.
    """
    requirements: list[tuple[str, Requirement]] = []
    for group in GROUPS_WITH_REQUIREMENTS:
        component = getattr(facts.components, group)
        with name_component_of_errors(component):
            requirements += [(group, item) for item in sort_requirements(component.requirements, choices[group])]
    for group in SIGNAL_READERS:
        component = getattr(facts.components, group)
        with name_component_of_errors(component):
            signals = [find_signal(name) for name in sorted(component.needs)]
        requirements += [(group, signal.requirement) for signal in signals if signal.requirement is not None]
    for group, requirement in requirements:
        if requirement.holds(facts) is False:
            raise IncompatibleConfig(requirement_message(requirement, f"{group}={choices[group]}", choices, facts))
    if (interval := facts.config["eval"]["update_every"]) and not FORESEEN_SAMPLES.holds(facts):
        raise IncompatibleConfig(requirement_message(FORESEEN_SAMPLES, f"eval.update_every={interval}", choices, facts))


def requirement_message(
    requirement: Requirement, option: str, choices: Mapping[str, str], facts: Facts | None = None
) -> str:
    """Return the message of a requirement that does not hold; option: the option that has this requirement."""
    options = {group: f"{group}={choice}" for group, choice in choices.items()}
    absence = " and ".join((facts and facts.options_for_full_participation) or ())
    return requirement.message.format(**options, option=option, full_participation=absence)


def sort_requirements(requirements: Iterable[Requirement], choice: str) -> list[Requirement]:
    """Sort the requirements of a component by their messages: the order of a set differs from process to process.

    Raises `IncompatibleConfig` for an item that is not a `Requirement`.
    """
    if invalid_item := next((item for item in requirements if not isinstance(item, Requirement)), None):
        message_start = f"{choice} declares {invalid_item!r} as a requirement or recommendation"
        raise IncompatibleConfig(f"{message_start}: it must be a Requirement of fedcohort.component")
    return sorted(requirements, key=lambda requirement: requirement.message)


def check_clock(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` if a budget of virtual seconds or joules (`until`) can never be reached."""
    virtual_s = facts.config["until"]["virtual_s"]
    if virtual_s is not None and not facts.time_passes:
        raise IncompatibleConfig(
            f"until.virtual_s={virtual_s:.10g} would never be reached: the virtual clock does not advance with "
            f"device={choices['device']} and deadline.window_s=0. Choose another device, or until.bytes"
        )
    watts, joules_per_byte = (facts.config["device"][name] for name in ("watts", "joules_per_byte"))
    if watts is not None and not facts.timed:
        raise IncompatibleConfig(
            f"device.watts={watts:.10g} needs seconds of computation, and device={choices['device']} takes no time: "
            "choose another device, or device.joules_per_byte"
        )
    if (joules := facts.config["until"]["joules"]) is not None and watts is None and not joules_per_byte:
        raise IncompatibleConfig(
            f"until.joules={joules:.10g} would never be reached: set device.watts or device.joules_per_byte"
        )


def check_targets(components: Mapping[str, Component], choices: Mapping[str, str], raw: "Raw") -> None:
    """Raise `IncompatibleConfig` if a component requires classes of samples that the data lack.

    components: the components that are applied to the data, by group.
    """
    for group, component in components.items():
        if ONE_CLASS_PER_SAMPLE in component.requirements and not raw.targets.single:
            raise IncompatibleConfig(requirement_message(ONE_CLASS_PER_SAMPLE, f"{group}={choices[group]}", choices))


def check_population(choices: Mapping[str, str], facts: Facts) -> None:
    """Check cohort and selector against the number of clients, and the requirements again with the data.

    Raises:
        IncompatibleConfig: if a requirement does not hold, or the cohort exceeds the number of clients.
        OptionError: if the selector rejects the population.
    """
    cohort, federation, deadline = facts.config["cohort"], facts.federation, facts.components.deadline
    excess_text = f"exceeds the {federation.n_clients} clients of dataset={federation.name}"
    if cohort > federation.n_clients:
        raise IncompatibleConfig(f"cohort={cohort} {excess_text}")
    if (n_selected := deadline.cohort_size(cohort)) > federation.n_clients:
        what = f"deadline={choices['deadline']} selects {n_selected} clients for cohort={cohort}, which {excess_text}"
        raise IncompatibleConfig(f"{what}: lower deadline.factor, or cohort")
    check(choices, facts)
    try:
        population = Populations.from_federation(federation, cohort).for_selector(deadline)
        facts.components.selector.init(population.for_reader(facts.components.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def check_model(model: "Model", choice: str, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if the model's inputs or outputs do not fit the data."""
    has_one_class, name = federation.targets.single, f"dataset={federation.name}"
    if model.reads_symbols != federation.is_symbolic:
        inputs, data = ("symbols", "numbers") if model.reads_symbols else ("numbers", "sequences of symbols")
        advice_text = "" if model.reads_symbols else f": choose model={'char_lstm' if has_one_class else 'word_lstm'}"
        raise IncompatibleConfig(f"model={choice} reads {inputs}, and the inputs of {name} are {data}{advice_text}")
    if model.per_position == has_one_class:
        what = "one class of a sequence, and samples of {} have a target at each position: choose model=word_lstm"
        if has_one_class:
            what = "one class at each position of a sequence, and samples of {} have one class: choose model=char_lstm"
        raise IncompatibleConfig(f"model={choice} predicts {what.format(name)}")


def check_batches(network: "nn.Module", batch: int | None, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if batch norm has a single value per channel in a batch."""
    from fedcohort.flat import can_norm_one_sample  # noqa: PLC0415 - torch is imported once the options are right

    if batch == 1 and not can_norm_one_sample(network, federation.server_test.x[:1]):
        what = "client.batch=1 leaves batch norm a single value per channel, which has no variance"
        raise IncompatibleConfig(f"{what}: choose client.batch=2 or more, or model.norm=group where the model has it")


def list_notices(choices: Mapping[str, str], facts: Facts, typed_overrides: Sequence[str] = ()) -> list[str]:
    """Return the notices about valid options that have no effect, or a surprising one, in a run.

    Args:
        choices: the choice in each group.
        facts: the run, including data and network.
        typed_overrides: the overrides that the user typed.
    """
    notices = []
    for group in SIGNAL_READERS:
        if signals := ", ".join(unknowable_signals(getattr(facts.components, group).needs)):
            notices.append(f"{group}={choices[group]} is an oracle, which no server could run: it reads {signals}")
    unmet_recommendations: dict[Requirement, list[str]] = {}  # recommendations of several components may be the same
    for group in GROUPS_WITH_REQUIREMENTS:
        for recommendation in sort_requirements(getattr(facts.components, group).recommendations, choices[group]):
            if recommendation.holds(facts) is False:
                unmet_recommendations.setdefault(recommendation, []).append(f"{group}={choices[group]}")
    for requirement, options in unmet_recommendations.items():
        notices.append(requirement_message(requirement, " and ".join(options), choices, facts))
    notices += _list_options_without_effect(choices, facts, typed_overrides)
    notices += _sent_models(choices, facts)
    for group in (field.name for field in fields(facts.components)):
        notices += getattr(facts.components, group).notices(choices[group])
    return notices


def _list_options_without_effect(choices: Mapping[str, str], facts: Facts, typed_overrides: Sequence[str]) -> list[str]:
    """Return a notice for each option that has no effect in this run."""
    components, lines = facts.components, []
    epochs = [override for override in typed_overrides if override.startswith("client.epochs=")]
    if components.client.steps is not None and epochs:
        lines.append(f"{epochs[-1]} has no effect: client.steps={components.client.steps} is set (null for epochs)")
    name = "epochs" if components.client.steps is None else "steps"
    local_units = getattr(components.client, name)
    if components.deadline.partial_work and not components.deadline.bounded:
        required = facts.config["requires"]
        aliases = [f"{group}={choices[group]}" for group in required if "deadline.partial_work" in required[group]]
        deadline = f"deadline={choices['deadline']}, where all clients finish"
        hints = [f"{alias} is intended for use with a deadline (deadline=fixed)" for alias in aliases]
        lines.append("; ".join([f"deadline.partial_work=true has no effect with {deadline}", *hints]))
    elif components.deadline.partial_work and local_units == 1:
        lines.append(f"deadline.partial_work=true has no effect with client.{name}=1, which can't be done in part")
    if components.attack.falsified_signals and not components.attack.falsified_signals & components.needs():
        false_signals = ", ".join(sorted(components.attack.falsified_signals))
        message_start = f"attack={choices['attack']} has no effect"
        lines.append(f"{message_start}: neither the selector nor the aggregator reads {false_signals}")
    if components.signal_noise.perturbs:
        signals = {name: find_signal(name) for name in sorted(components.needs())}
        unprotected = [name for name, signal in signals.items() if isinstance(signal, Static) and signal.bytes_up]
        if not any(isinstance(signal, Reported | QueriedSignal) and signal.bytes_up for signal in signals.values()):
            lines.append(f"signal_noise={choices['signal_noise']} has no effect: no component reads a reported number")
        elif unprotected:
            lines.append(
                f"signal_noise={choices['signal_noise']} adds no noise to facts that clients send at registration: "
                f"privacy/epsilon does not cover {', '.join(unprotected)}"
            )
    if components.proxy.has_inputs and PROXY_INPUTS not in components.agg.requirements:
        lines.append(f"proxy={choices['proxy']} has no effect: agg={choices['agg']} doesn't read it")
    decay_overrides = [override for override in typed_overrides if override.startswith("eval.average_decay=")]
    if decay_overrides and facts.config["eval"]["average"] == "none":
        lines.append(f"{decay_overrides[-1]} has no effect with eval.average=none: set eval.average=ema")
    return lines


def _sent_models(choices: Mapping[str, str], facts: Facts) -> list[str]:
    """Return a notice if the models that clients in flight received may take more than `client_store.limit_gb`."""
    deadline, config, limit_gb = facts.components.deadline, facts.config, facts.config["client_store"]["limit_gb"]
    if not deadline.carries or facts.layout is None:
        return []
    n_models, n_places = min(facts.federation.n_clients, config["rounds"]), deadline.cohort_size(config["cohort"])
    if not deadline.free_places(n_places, n_places):  # at most this many clients work at a time
        n_models = min(n_models, n_places)
    if (max_staleness := deadline.staleness_limit()) is not None:
        n_models = min(n_models, max_staleness + 1)
    n_vectors = 1 + sum(len(hook.downloads) for hook in facts.components.agg.hooks)
    model_gb = BYTES_PER_NUMBER * n_vectors * facts.layout.n_params / 1e9
    if n_models * model_gb <= limit_gb:
        return []
    return [
        f"deadline={choices['deadline']} keeps each model that a client in flight received, in memory and in "
        f"checkpoints: up to {n_models} models of {model_gb:.3g} GB, above client_store.limit_gb={limit_gb:g}. Set "
        "deadline.max_staleness to keep fewer, or a longer checkpoint.every_s"
    ]


def list_late_evaluations(config: Mapping[str, Any]) -> list[str]:
    """Return a notice for each evaluation whose interval exceeds the rounds of the run; config: composed."""
    rounds, notices = config["rounds"], []
    for name, location_text in EVALUATIONS.items():
        if (interval := config["eval"][name]) > rounds:
            message_start = f"eval.{name}={interval} exceeds rounds={rounds}"
            notices.append(f"{message_start}: only the first model is evaluated{location_text}, before any training")
    return notices
