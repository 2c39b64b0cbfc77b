"""Check the requirements of components on each other and on the data.

The messages of requirements and recommendations are in the components' files.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fedcohort.component import FORESEEN_SAMPLES, ONE_CLASS_PER_SAMPLE, Component, Facts, Requirement
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.round.guard import prefix_errors_with_component
from fedcohort.round.populations import Populations
from fedcohort.signal.base import find_signal

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw
    from fedcohort.model.base import Model

# Groups whose components may have requirements, in the order of the messages, and groups whose components read signals
GROUPS_WITH_REQUIREMENTS = (
    *("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device", "augmentation"),
)
SIGNAL_READING_GROUPS = ("selector", "agg", "samples", "deadline")


def check_requirements(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` at the first requirement that does not hold.

    Args:
        choices: the choice in each group.
        facts: the run, as far as it is known.
    """
    requirements: list[tuple[str, Requirement]] = []
    for group in GROUPS_WITH_REQUIREMENTS:
        component = getattr(facts.components, group)
        with prefix_errors_with_component(component):
            requirements += [(group, r) for r in sort_requirements(component.requirements, choices[group])]
    for group in SIGNAL_READING_GROUPS:
        component = getattr(facts.components, group)
        with prefix_errors_with_component(component):
            signals = [find_signal(k) for k in sorted(component.needs)]
        requirements += [(group, signal.requirement) for signal in signals if signal.requirement is not None]
    for group, requirement in requirements:
        if requirement.holds(facts) is False:
            raise IncompatibleConfig(format_requirement(requirement, f"{group}={choices[group]}", choices, facts))
    if (interval := facts.config["eval"]["update_every"]) and not FORESEEN_SAMPLES.holds(facts):
        raise IncompatibleConfig(format_requirement(FORESEEN_SAMPLES, f"eval.update_every={interval}", choices, facts))


def format_requirement(
    requirement: Requirement, option_text: str, choices: Mapping[str, str], facts: Facts | None = None
) -> str:
    """Return the message of a requirement that does not hold.

    Args:
        requirement: the requirement.
        option_text: the option that has this requirement, such as "selector=flash".
        choices: the choice in each group.
        facts: the run, as far as it is known; None if nothing is known.
    """
    choice_text_by_group = {group: f"{group}={group_choice}" for group, group_choice in choices.items()}
    full_participation = " and ".join((facts and facts.options_for_full_participation) or ())
    return requirement.message.format(**choice_text_by_group, option=option_text, full_participation=full_participation)


def sort_requirements(requirements: Iterable[Requirement], component_choice: str) -> list[Requirement]:
    """Sort the requirements of a component by their messages: the order of a set differs from process to process.

    Args:
        requirements: the requirements.
        component_choice: the choice that declares them, for the error.

    Raises:
        IncompatibleConfig: an item is not a `Requirement`.
    """
    if invalid_requirement := next((r for r in requirements if not isinstance(r, Requirement)), None):
        message_start = f"{component_choice} declares {invalid_requirement!r} as a requirement or recommendation"
        raise IncompatibleConfig(f"{message_start}: it must be a Requirement of fedcohort.component")
    return sorted(requirements, key=lambda requirement: requirement.message)


def check_clock_budgets(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` if a budget of virtual seconds or joules (`until`) can never be reached.

    It is also raised for `device.watts` with a device whose work takes no time.

    Args:
        choices: the choice in each group.
        facts: the run's components and config.
    """
    max_virtual_s = facts.config["until"]["virtual_s"]
    if max_virtual_s is not None and not facts.time_passes:
        raise IncompatibleConfig(
            f"until.virtual_s={max_virtual_s:.10g} would never be reached: the virtual clock does not advance with "
            f"device={choices['device']} and deadline.window_s=0. Choose another device, or until.bytes"
        )
    watts, joules_per_byte = (facts.config["device"][k] for k in ("watts", "joules_per_byte"))
    if watts is not None and not facts.timed:
        raise IncompatibleConfig(
            f"device.watts={watts:.10g} needs seconds of computation, and device={choices['device']} takes no time: "
            "choose another device, or device.joules_per_byte"
        )
    if (max_joules := facts.config["until"]["joules"]) is not None and watts is None and not joules_per_byte:
        raise IncompatibleConfig(
            f"until.joules={max_joules:.10g} would never be reached: set device.watts or device.joules_per_byte"
        )


def check_target_kind(components_by_group: Mapping[str, Component], choices: Mapping[str, str], raw: "Raw") -> None:
    """Raise `IncompatibleConfig` if a component requires one class per sample and the data lack it.

    Args:
        components_by_group: the components that are applied to the data, by group.
        choices: the choice in each group.
        raw: the dataset.
    """
    for group, component in components_by_group.items():
        if ONE_CLASS_PER_SAMPLE in component.requirements and not raw.targets.single:
            raise IncompatibleConfig(format_requirement(ONE_CLASS_PER_SAMPLE, f"{group}={choices[group]}", choices))


def check_population(choices: Mapping[str, str], facts: Facts) -> None:
    """Check cohort and selector against the number of clients, and the requirements again with the data.

    Args:
        choices: the choice in each group.
        facts: the run's components, config and federation.

    Raises:
        IncompatibleConfig: a requirement does not hold, or the cohort exceeds the number of clients.
        OptionError: the selector rejects the population.
    """
    cohort_size, federation, deadline = facts.config["cohort"], facts.federation, facts.components.deadline
    excess_description = f"exceeds the {federation.n_clients} clients of dataset={federation.name}"
    if cohort_size > federation.n_clients:
        raise IncompatibleConfig(f"cohort={cohort_size} {excess_description}: lower cohort")
    if (n_selected_clients := deadline.cohort_size(cohort_size)) > federation.n_clients:
        raise IncompatibleConfig(
            f"deadline={choices['deadline']} selects {n_selected_clients} clients for cohort={cohort_size}, which "
            f"{excess_description}: {', or '.join(filter(None, (deadline.smaller_cohort_advice, 'lower cohort')))}"
        )
    check_requirements(choices, facts)
    try:
        population = Populations.from_federation(federation, cohort_size).resize_cohort(deadline)
        facts.components.selector.init(population.make_population(facts.components.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def check_model(model: "Model", model_choice: str, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if the inputs or outputs of `model` do not fit the data.

    `model_choice` is the choice of the model, for the message; `federation` has the data.
    """
    has_one_class, dataset_option = federation.targets.single, f"dataset={federation.name}"
    if model.reads_symbols != federation.is_symbolic:
        model_kind, input_kind = ("tokens", "numbers") if model.reads_symbols else ("numbers", "sequences of tokens")
        valid_model = "mlp" if model.reads_symbols else "char_lstm" if has_one_class else "word_lstm"
        data_inputs_text = f"the inputs of {dataset_option} are {input_kind}: choose model={valid_model}"
        raise IncompatibleConfig(f"model={model_choice} reads {model_kind}, and {data_inputs_text}")
    if model.per_position == has_one_class:
        output_text = "one class at each position of a sequence" if has_one_class else "one class of a sequence"
        targets_text = "one class" if has_one_class else "a target at each position"
        samples_text = f"samples of {dataset_option} have {targets_text}"
        valid_model = "char_lstm" if has_one_class else "word_lstm"
        message_start = f"model={model_choice} predicts {output_text}, and {samples_text}"
        raise IncompatibleConfig(f"{message_start}: choose model={valid_model}")


def check_batch_norm(network: "nn.Module", batch_size: int | None, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if batch norm has a single value per channel in a batch of `batch_size` samples.

    `network` is the network of the run; `federation` has its data.
    """
    from fedcohort.flat import can_norm_one_sample  # noqa: PLC0415 - torch is imported once the options are right

    if batch_size == 1 and not can_norm_one_sample(network, federation.server_test.x[:1]):
        batch_norm_problem = "client.batch=1 leaves batch norm a single value per channel, which has no variance"
        raise IncompatibleConfig(
            f"{batch_norm_problem}: choose client.batch=2 or more, or model.norm=group where the model has it"
        )
