"""The contract of all components, and what a component may require or recommend of a run.

A component is the object that a choice of a config group stands for, such as a selector, an aggregator or a codec. The
`base` module of its group adds the methods of that group to this contract.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fedcohort.errors import ComponentError


@dataclass(frozen=True)
class Facts:
    """A read-only view of a run, from which requirements read. What is not known yet is None.

    Attributes:
        parts: the components (`round.parts.Parts`).
        config: the composed config.
        federation: the data (`data.federation.Federation`), once they are read.
        most_samples: training samples in a round of the client that has most, once the data are read.
        layout: shapes of the network's tensors (`flat.Layout`), once it is built.
        batch_norm: whether the network has batch norm that keeps its statistics, once it is built.
    """

    parts: Any
    config: Mapping[str, Any]
    federation: Any = None
    most_samples: int | None = None
    layout: Any = None
    batch_norm: bool | None = None

    @property
    def timed(self) -> bool:
        """Whether work takes virtual time, so that durations carry information."""
        return bool(self.parts.device.timed)

    @property
    def time_passes(self) -> bool:
        """Whether the virtual clock moves from round to round, by work or by the window of selection."""
        return self.timed or self.config["deadline"]["window_s"] > 0

    @property
    def cohort(self) -> int | None:
        """Clients that are selected in a round, once it is known how many there are."""
        return self.federation and int(self.parts.deadline.ask(self.config["cohort"]))

    @property
    def arriving(self) -> int | None:
        """Clients that arrive in a round at most, once it is known how many there are."""
        if self.federation is None or not self.timed:
            return self.cohort
        return int(self.parts.deadline.max_arrivals(self.config["cohort"]))

    @property
    def absence(self) -> tuple[str, ...] | None:
        """Options with which all clients would take part in every round, instead of those that keep some away.

        () where all of them do; None where it is not known how many clients there are.
        """
        if self.federation is None:
            return None
        parts, late = self.parts, self.parts.deadline.bounded and self.timed  # without virtual time no client is late
        places = self.config["cohort"] if late else self.cohort
        keeps_away = {
            "cohort=clients": places < self.federation.n_clients and not parts.selector.uncapped,
            "availability=always": not parts.availability.always,
            "deadline=wait_for_all": late,
        }
        return tuple(option for option, some in keeps_away.items() if some)

    @property
    def full_participation(self) -> bool | None:
        """Whether all clients take part in every round."""
        return None if self.absence is None else not self.absence


@dataclass(frozen=True)
class Requirement:
    """A property that a run must have (requirement) or should have (recommendation) for a component to work as meant.

    Attributes:
        holds: returns whether the run has the property; None while that is not known.
        message: the error, or the notice, where it does not hold. Placeholders: {option} is the option that requires
            it, {agg}, {codec}, ... the option of that group, and {full_participation} the options with which all
            clients take part in every round.
    """

    holds: Callable[[Facts], bool | None]
    message: str

    def __post_init__(self) -> None:
        for old, new in {"{who}": "{option}", "{everybody}": "{full_participation}"}.items():
            if old in self.message:
                raise ComponentError(f"a requirement's message holds {old}, which is called {new} now: {self.message}")

    def or_else(self, alternative: str) -> "Requirement":
        """Return this requirement with another way to meet it, an option of the component, added to its message."""
        return replace(self, message=f"{self.message}, or {alternative}")


RENAMED = {"wants": "requirements", "prefers": "recommendations", "remarks": "notices"}  # old names of declarations


class Component(Protocol):
    """The declarations of all components. A ClassVar may replace a property that does not depend on options."""

    @property
    def requirements(self) -> frozenset[Requirement]:
        """What must hold of the run. If one does not hold, the run is rejected at its start with the message."""
        return frozenset()

    @property
    def recommendations(self) -> frozenset[Requirement]:
        """What should hold of the run. If one does not hold, the run starts, and the message is a notice."""
        return frozenset()

    def notices(self, choice: str) -> Sequence[str]:
        """Return notices about valid options that have no effect, or a surprising one.

        Args:
            choice: the name under which the component was chosen in its group.
        """
        return ()


TIMED_DEVICE = Requirement(
    lambda run: run.timed,
    "{option} reads how long clients take, but device=instant takes no time: choose device=shifted_exponential",
)
ANNOUNCED_DEADLINE = Requirement(
    lambda run: run.parts.deadline.announces,
    "{option} goes by the deadline that clients are told, and {deadline} tells them none: choose deadline=fixed or "
    "deadline=fedbalancer",
)
EPOCHS = Requirement(
    lambda run: run.parts.client.steps is None,
    "{option} shortens a round by training on fewer samples, but client.steps fixes the number of steps, whatever the "
    "samples: choose client.steps=null",
)
FORESEEN_SAMPLES = Requirement(
    lambda run: run.parts.samples.foreseen,
    "{option} has clients train before a cohort is chosen, but {samples} chooses their samples by the deadline or the "
    "losses of those that are in it: choose samples=all or random",
)
LOSS_LISTS = Requirement(
    lambda run: run.parts.samples.tells_losses,
    "{option} reads what clients report of lists of losses, and with {samples} they keep none: choose "
    "samples=fedbalancer",
)
PASSING_TIME = Requirement(
    lambda run: run.time_passes,
    "{option} follows the virtual clock, which neither work with device=instant nor deadline.window_s=0 moves: who is "
    "ready in the first round is ready in all",
)
UNDECAYED_CLIENT = Requirement(
    lambda run: run.parts.client.weight_decay == 0,
    "{option} keeps local training within what is sent, but client.weight_decay moves every parameter: choose "
    "client.weight_decay=0, or a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
FREE_UPDATE = Requirement(
    lambda run: not run.parts.codec.hooks,
    "{option} compares or corrects clients in all parameters, but the codec keeps each client's training within a "
    "random part of its own: choose a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
ATTRIBUTES = Requirement(
    lambda run: run.federation and run.federation.group_counts is not None,
    "{option} reads how many samples of each class and attribute clients have, but {dataset} knows no attributes: "
    "choose dataset=cmnist",
)
CLASSES = Requirement(
    lambda run: run.federation and run.federation.targets.single,
    "{option} goes by the class of a sample, but a sample of {dataset} has a target at each of its positions: choose "
    "another option of the group",
)
PROXY = Requirement(
    lambda run: run.parts.proxy.holds,
    "{option} teaches networks on inputs that the server holds, and it holds none (proxy=none): choose proxy=dataset, "
    "proxy=client_heldout or proxy=noise",
)
RELATIVE_ADVICE = Requirement(
    lambda run: not run.parts.selector.absolute,
    "{option} works out weights of its own, which sum to what its method says, and {selector} advises weights whose "
    "very sum counts (an estimate without bias): choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
UNADVISED_WEIGHTS = Requirement(
    lambda run: not run.parts.selector.weighs,
    "{option} weighs clients in a way of its own for a part of its step, or all of it, and the weights that {selector} "
    "advises count for the rest alone: choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
CLEAN_LABELS = Requirement(
    lambda run: run.federation and not run.federation.noise_rate.any(),
    "high losses draw {option} to clients, and wrong labels ({label_noise}) make losses high, too",
)
NO_BATCH_NORM = Requirement(
    lambda run: None if run.batch_norm is None else not run.batch_norm,
    "the network has batch norm, whose statistics are averaged over samples whatever {option} makes of the parameters: "
    "they are not quite those of the model that comes of it (group norm has none)",
)
