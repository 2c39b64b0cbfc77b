"""The contract of all components, and what a component may require or recommend of a run.

A component is the object that a choice of a config group stands for, such as a selector, an aggregator or a codec. The
`base` module of its group adds the methods of that group to this contract.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fedcohort.errors import ComponentError, renamed_attribute


@dataclass(frozen=True)
class Facts:
    """A read-only view of a run, which requirements read. A value that is not known yet is None.

    Attributes:
        components: the run's components (`round.components.Components`).
        config: the composed config, option values by name.
        federation: the clients' data (`data.federation.Federation`), once they are read.
        most_samples: number of samples on which the largest client trains in a round, once the data are read.
        layout: shapes of the network's tensors (`flat.Layout`), once it is built.
        batch_norm: whether the network has batch norm that keeps running statistics, once it is built.
    """

    components: Any
    config: Mapping[str, Any]
    federation: Any = None
    most_samples: int | None = None
    layout: Any = None
    batch_norm: bool | None = None
    parts = renamed_attribute("Facts.parts", "components")
    absence = renamed_attribute("Facts.absence", "options_for_full_participation")
    arriving = renamed_attribute("Facts.arriving", "max_arrivals")

    @property
    def timed(self) -> bool:
        """Whether clients' work takes virtual time, so that durations carry information."""
        return bool(self.components.device.timed)

    @property
    def time_passes(self) -> bool:
        """Whether virtual time passes between rounds: clients' work takes time, or `deadline.window_s` is above 0."""
        return self.timed or self.config["deadline"]["window_s"] > 0

    @property
    def cohort(self) -> int | None:
        """Number of clients that are selected in a round, once the data are read."""
        return self.federation and int(self.components.deadline.cohort_size(self.config["cohort"]))

    @property
    def max_arrivals(self) -> int | None:
        """Largest number of clients whose updates reach the server in a round, once the data are read."""
        if self.federation is None or not self.timed:
            return self.cohort
        return int(self.components.deadline.max_arrivals(self.config["cohort"]))

    @property
    def options_for_full_participation(self) -> tuple[str, ...] | None:
        """The options to set so that all clients take part in every round; None before the data are read."""
        if self.federation is None:
            return None
        components, has_deadline = self.components, self.components.deadline.bounded and self.timed
        n_arriving = self.config["cohort"] if has_deadline else self.cohort
        is_option_needed = {
            "cohort=clients": n_arriving < self.federation.n_clients and not components.selector.uncapped,
            "availability=always": not components.availability.always,
            "deadline=wait_for_all": has_deadline,
        }
        return tuple(k for k, is_needed in is_option_needed.items() if is_needed)

    @property
    def full_participation(self) -> bool | None:
        """Whether all clients take part in every round of the run; None if that is not known yet."""
        return None if self.options_for_full_participation is None else not self.options_for_full_participation


@dataclass(frozen=True)
class Requirement:
    """A property that a run must have (requirement) or should have (recommendation) for a component to work as meant.

    Attributes:
        holds: function that returns whether a run has the property; None while that is not known.
        message: text of the error or the notice if a run lacks the property. Placeholders: {option} is the option that
            requires it, {agg}, {codec}, ... the option of that group, and {full_participation} the options with which
            all clients take part in every round.
    """

    holds: Callable[[Facts], bool | None]
    message: str

    def __post_init__(self) -> None:
        for old_placeholder, new_placeholder in {"{who}": "{option}", "{everybody}": "{full_participation}"}.items():
            if old_placeholder in self.message:
                raise ComponentError(
                    f"a requirement's message holds {old_placeholder}, which is called {new_placeholder} now: "
                    f"{self.message}"
                )

    def or_else(self, alternative_option: str) -> "Requirement":
        """Return this requirement, whose message also offers `alternative_option`, such as "selector.beta=0"."""
        return replace(self, message=f"{self.message}, or {alternative_option}")


NEW_NAMES_OF_DECLARATIONS = {  # old names of what components declare and do, for one release
    "wants": "requirements",
    "prefers": "recommendations",
    "remarks": "notices",
    "holds": "has_inputs",
    "ask": "cohort_size",
    "tell": "report_losses",
    "look": "stores_losses",
    "tells_losses": "reports_losses",
    "takes_several": "takes_several_steps",
    "about": "falsified_signals",
    "liars": "attacker_ids",
    "claim": "falsify",
    "outer": "transform_mean",
    "reach": "max_bounded_loss",
    "averages": "minimises_mean",
    "everything": "uses_all_samples",
    "foreseen": "is_foreseeable",
    "keeps_list": "stores_losses",
    "own_length": "sets_step_length",
}


class Component(Protocol):
    """The declarations of a component of any group. A ClassVar may replace a property that no option changes."""

    @property
    def requirements(self) -> frozenset[Requirement]:
        """Conditions on the run. If one is not met, the run is rejected at its start with the condition's message."""
        return frozenset()

    @property
    def recommendations(self) -> frozenset[Requirement]:
        """Conditions on the run. If one of them is not met, the condition's message is printed and the run starts."""
        return frozenset()

    def notices(self, choice: str, /) -> Sequence[str]:
        """Return texts to print at the start, about valid options that have no effect or a surprising one.

        Args:
            choice: name of the component in its group, as in selector=random.
        """
        return ()


TIMED_DEVICE = Requirement(
    lambda facts: facts.timed,
    "{option} reads how long clients take, but device=instant takes no time: choose device=shifted_exponential",
)
ANNOUNCED_DEADLINE = Requirement(
    lambda facts: facts.components.deadline.announces,
    "{option} uses the deadline that is announced to clients, and {deadline} announces none: choose deadline=fixed or "
    "deadline=fedbalancer",
)
EPOCH_TRAINING = Requirement(
    lambda facts: facts.components.client.steps is None,
    "{option} shortens a round by training on fewer samples, but client.steps fixes the number of steps: choose "
    "client.steps=null",
)
FORESEEN_SAMPLES = Requirement(
    lambda facts: facts.components.samples.is_foreseeable,
    "{option} has clients train before the cohort is selected, but {samples} chooses samples by the deadline or the "
    "losses of the cohort: choose samples=all or samples=random",
)
LOSS_LISTS = Requirement(
    lambda facts: facts.components.samples.reports_losses,
    "{option} reads statistics of the clients' lists of losses, and {samples} keeps no such lists: choose "
    "samples=fedbalancer",
)
ADVANCING_CLOCK = Requirement(
    lambda facts: facts.time_passes,
    "{option} follows the virtual clock, which does not advance with device=instant and deadline.window_s=0: the same "
    "clients are ready in all rounds (choose device=shifted_exponential, or deadline.window_s above 0)",
)
LATE_UPDATES = Requirement(
    lambda facts: facts.components.deadline.carries,
    "{option} reads the staleness of updates, but with {deadline} no update arrives in a later round: choose "
    "deadline=buffered, or deadline=fixed with deadline.late_updates=carry",
)
SAME_MODEL = Requirement(
    lambda facts: not facts.components.deadline.carries,
    "{option} needs all updates of a round to start from the same model, but late updates under {deadline} start from "
    "an older one: choose deadline=wait_for_all, or deadline=fixed with deadline.late_updates=drop",
)
UNDECAYED_CLIENT = Requirement(
    lambda facts: facts.components.client.weight_decay == 0,
    "{option} restricts local training to the parameters that are sent, but client.weight_decay changes every "
    "parameter: choose client.weight_decay=0, or a codec that works on finished updates (codec=subsample, "
    "codec=quant, or codec.mode=posthoc for codec=lowrank)",
)
UNRESTRICTED_UPDATE = Requirement(
    lambda facts: not facts.components.codec.hooks,
    "{option} compares or corrects clients in all parameters, but the codec restricts the training of each client to "
    "a random subset of them: choose a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
SAMPLE_ATTRIBUTES = Requirement(
    lambda facts: facts.federation and facts.federation.group_counts is not None,
    "{option} reads the numbers of samples per class and attribute, but {dataset} has no attributes: choose "
    "dataset=cmnist",
)
ONE_CLASS_PER_SAMPLE = Requirement(
    lambda facts: facts.federation and facts.federation.targets.single,
    "{option} uses the class of a sample, but a sample of {dataset} has a target at each of its positions: choose "
    "another value of this option",
)
PROXY_INPUTS = Requirement(
    lambda facts: facts.components.proxy.has_inputs,
    "{option} trains networks on inputs of the server, but with proxy=none the server has no inputs: choose "
    "proxy=dataset, proxy=client_heldout or proxy=noise",
)
RELATIVE_ADVICE = Requirement(
    lambda facts: not facts.components.selector.absolute,
    "{option} normalises the weights of clients, but the weights that {selector} sets must keep their sum for an "
    "unbiased estimate: choose agg=fedavg, or options with which the selector sets no weights (for example "
    "selector.agg=fedavg)",
)
UNADVISED_WEIGHTS = Requirement(
    lambda facts: not facts.components.selector.weighs,
    "{option} computes its own weights for a part of its step, where the weights that {selector} sets have no effect: "
    "choose agg=fedavg, or options with which the selector sets no weights (for example selector.agg=fedavg)",
)
CLEAN_LABELS = Requirement(
    lambda facts: facts.federation and not facts.federation.noise_rate.any(),
    "with {option}, clients with high losses get more weight, and label noise ({label_noise}) also raises losses "
    "(choose label_noise=none, or a method that does not weigh clients by their losses)",
)
NO_BATCH_NORM = Requirement(
    lambda facts: None if facts.batch_norm is None else not facts.batch_norm,
    "the network has batch norm, whose statistics are averaged over samples, while {option} combines parameters in "
    "another way: the statistics fit the new model only approximately (choose a model with group norm, which has none)",
)
