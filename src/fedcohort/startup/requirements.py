"""Check the requirements of components on each other and on the data. Their messages are in the components' files."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fedcohort.component import CLASSES, Component, Facts, Requirement
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.round.components import Populations
from fedcohort.round.guard import name_part_in_errors
from fedcohort.signal.base import find

if TYPE_CHECKING:
    from torch import nn

    from fedcohort.data.federation import Federation
    from fedcohort.dataset.base import Raw
    from fedcohort.model.base import Model

# Groups whose components may have requirements, in the order of the messages, and groups whose components read signals
GROUPS = ("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device", "augmentation")
READERS = ("selector", "agg", "samples", "deadline")


def check(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` at the first requirement that does not hold.

    Args:
        choices: the choice in each group.
        facts: the run, as far as it is known.
    """
    required: list[tuple[str, Requirement]] = []
    for group in GROUPS:
        component = getattr(facts.components, group)
        with name_part_in_errors(component):
            required += [(group, item) for item in sort_requirements(component.requirements, choices[group])]
    for group in READERS:
        component = getattr(facts.components, group)
        with name_part_in_errors(component):
            signals = [find(name) for name in sorted(component.needs)]
        required += [(group, signal.requirement) for signal in signals if signal.requirement is not None]
    for group, requirement in required:
        if requirement.holds(facts) is False:
            raise IncompatibleConfig(requirement_message(requirement, f"{group}={choices[group]}", choices, facts))


def requirement_message(
    requirement: Requirement, option: str, choices: Mapping[str, str], facts: Facts | None = None
) -> str:
    """Return the message of a requirement that does not hold; option: the one that requires it."""
    options = {group: f"{group}={choice}" for group, choice in choices.items()}
    absence = " and ".join((facts and facts.options_for_full_participation) or ())
    return requirement.message.format(**options, option=option, full_participation=absence)


def sort_requirements(requirements: Iterable[Requirement], choice: str) -> list[Requirement]:
    """Sort the requirements of a component by their messages: the order of a set differs from process to process.

    Raises `IncompatibleConfig` for an item that is not a `Requirement`.
    """
    if invalid_item := next((item for item in requirements if not isinstance(item, Requirement)), None):
        raise IncompatibleConfig(
            f"{choice} declares {invalid_item!r} as a requirement or recommendation: it must be a Requirement of "
            "fedcohort.component"
        )
    return sorted(requirements, key=lambda requirement: requirement.message)


def check_clock(choices: Mapping[str, str], facts: Facts) -> None:
    """Raise `IncompatibleConfig` if a budget of virtual seconds (`until.virtual_s`) can never be reached."""
    virtual_s = facts.config["until"]["virtual_s"]
    if virtual_s is not None and not facts.time_passes:
        raise IncompatibleConfig(
            f"until.virtual_s={virtual_s:.10g} would never be reached: the virtual clock does not advance with "
            f"device={choices['device']} and deadline.window_s=0. Choose another device, or until.bytes"
        )


def check_targets(components: Mapping[str, Component], choices: Mapping[str, str], raw: "Raw") -> None:
    """Raise `IncompatibleConfig` if a component requires classes of samples that the data lack.

    components: those that are applied to the data, by group.
    """
    for group, component in components.items():
        if CLASSES in component.requirements and not raw.targets.single:
            raise IncompatibleConfig(requirement_message(CLASSES, f"{group}={choices[group]}", choices))


def check_population(choices: Mapping[str, str], facts: Facts) -> None:
    """Check cohort and selector against the number of clients, and the requirements again with the data.

    Raises:
        IncompatibleConfig: if a requirement does not hold, or the cohort exceeds the number of clients.
        OptionError: if the selector rejects the population.
    """
    cohort, federation, deadline = facts.config["cohort"], facts.federation, facts.components.deadline
    exceeds = f"exceeds the {federation.n_clients} clients of dataset={federation.name}"
    if cohort > federation.n_clients:
        raise IncompatibleConfig(f"cohort={cohort} {exceeds}")
    if (selected := deadline.cohort_size(cohort)) > federation.n_clients:
        raise IncompatibleConfig(
            f"deadline={choices['deadline']} selects {selected} clients for cohort={cohort}, which {exceeds}: lower "
            "deadline.factor, or cohort"
        )
    check(choices, facts)
    try:
        population = Populations.from_federation(federation, cohort).for_selector(deadline)
        facts.components.selector.init(population.for_reader(facts.components.selector.needs, "the selector"))
    except OptionError as error:
        raise OptionError(f"selector.{error}") from error


def check_model(model: "Model", choice: str, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if the model's inputs or outputs do not fit the data."""
    single, name = federation.targets.single, f"dataset={federation.name}"
    if model.reads_symbols != federation.is_symbolic:
        model_input_kind, data_kind = (
            ("symbols", "numbers") if model.reads_symbols else ("numbers", "sequences of symbols")
        )
        suitable_model = "char_lstm" if single else "word_lstm"
        advice = "" if model.reads_symbols else f": choose model={suitable_model}"
        raise IncompatibleConfig(
            f"model={choice} reads {model_input_kind}, and the inputs of {name} are {data_kind}{advice}"
        )
    if model.per_position == single:
        model_output, data_targets, suitable_model = "one class of a sequence", "a target at each position", "word_lstm"
        if model.per_position:
            model_output, data_targets, suitable_model = (
                "one class at each position of a sequence",
                "one class",
                "char_lstm",
            )
        raise IncompatibleConfig(
            f"model={choice} predicts {model_output}, and samples of {name} have {data_targets}: "
            f"choose model={suitable_model}"
        )


def check_batches(network: "nn.Module", batch: int | None, federation: "Federation") -> None:
    """Raise `IncompatibleConfig` if batch norm has a single value per channel in a batch."""
    from fedcohort.flat import can_norm_one_sample  # noqa: PLC0415 - torch is imported once the options are right

    if batch == 1 and not can_norm_one_sample(network, federation.server_test.x[:1]):
        raise IncompatibleConfig(
            "client.batch=1 leaves batch norm a single value per channel, which has no variance: choose "
            "client.batch=2 or more, or model.norm=group where the model has it"
        )
