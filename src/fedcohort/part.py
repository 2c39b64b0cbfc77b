"""What every component of a run may state about itself, and what it may require of the others.

A component is what an option of a config group stands for: a selector, an aggregator, a codec, ... It writes what it
does, and inherits the rest from the contract in its group's `base` module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol


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
        return int(self.parts.deadline.most(self.config["cohort"]))

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
class Want:
    """Something that must hold of the run, or should hold.

    Attributes:
        holds: returns whether it does; None where that isn't known yet.
        sentence: the message where it doesn't hold. {who} is the option that requires it, {agg}, {codec}, ... any
            group's, and {everybody} are the options with which all clients would take part in every round.
    """

    holds: Callable[[Facts], bool | None]
    sentence: str

    def or_else(self, way_out: str) -> "Want":
        """Return the same requirement for a component that has an option by which it goes without."""
        return replace(self, sentence=f"{self.sentence}, or {way_out}")


class Part(Protocol):
    """What a component may state about itself; a ClassVar will do where options decide nothing."""

    @property
    def wants(self) -> frozenset[Want]:
        """What must hold of the run; otherwise the run is rejected at the start with the sentence."""
        return frozenset()

    @property
    def prefers(self) -> frozenset[Want]:
        """What should hold of the run; otherwise it runs, and the sentence is a notice at the start."""
        return frozenset()

    def remarks(self, word: str) -> Sequence[str]:
        """Return notices about options that are legal and have a surprising effect; word: the choice in the group."""
        return ()


TIMED_DEVICE = Want(
    lambda run: run.timed,
    "{who} reads how long clients take, but device=instant takes no time: choose device=shifted_exponential",
)
ANNOUNCED_DEADLINE = Want(
    lambda run: run.parts.deadline.announces,
    "{who} goes by the deadline that clients are told, and {deadline} tells them none: choose deadline=fixed or "
    "deadline=fedbalancer",
)
EPOCHS = Want(
    lambda run: run.parts.client.steps is None,
    "{who} shortens a round by training on fewer samples, but client.steps fixes the number of steps, whatever the "
    "samples: choose client.steps=null",
)
FORESEEN_SAMPLES = Want(
    lambda run: run.parts.samples.foreseen,
    "{who} has clients train before a cohort is chosen, but {samples} chooses their samples by the deadline or the "
    "losses of those that are in it: choose samples=all or random",
)
LOSS_LISTS = Want(
    lambda run: run.parts.samples.tells_losses,
    "{who} reads what clients report of lists of losses, and with {samples} they keep none: choose samples=fedbalancer",
)
PASSING_TIME = Want(
    lambda run: run.time_passes,
    "{who} follows the virtual clock, which neither work with device=instant nor deadline.window_s=0 moves: who is "
    "ready in the first round is ready in all",
)
UNDECAYED_CLIENT = Want(
    lambda run: run.parts.client.weight_decay == 0,
    "{who} keeps local training within what is sent, but client.weight_decay moves every parameter: choose "
    "client.weight_decay=0, or a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
FREE_UPDATE = Want(
    lambda run: not run.parts.codec.hooks,
    "{who} compares or corrects clients in all parameters, but the codec keeps each client's training within a random "
    "part of its own: choose a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
ATTRIBUTES = Want(
    lambda run: run.federation and run.federation.group_counts is not None,
    "{who} reads how many samples of each class and attribute clients have, but {dataset} knows no attributes: choose "
    "dataset=cmnist",
)
CLASSES = Want(
    lambda run: run.federation and run.federation.targets.single,
    "{who} goes by the class of a sample, but a sample of {dataset} has a target at each of its positions: choose "
    "another option of the group",
)
PROXY = Want(
    lambda run: run.parts.proxy.holds,
    "{who} teaches networks on inputs that the server holds, and it holds none (proxy=none): choose proxy=dataset, "
    "proxy=client_heldout or proxy=noise",
)
RELATIVE_ADVICE = Want(
    lambda run: not run.parts.selector.absolute,
    "{who} works out weights of its own, which sum to what its method says, and {selector} advises weights whose very "
    "sum counts (an estimate without bias): choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
UNADVISED_WEIGHTS = Want(
    lambda run: not run.parts.selector.weighs,
    "{who} weighs clients in a way of its own for a part of its step, or all of it, and the weights that {selector} "
    "advises count for the rest alone: choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
CLEAN_LABELS = Want(
    lambda run: run.federation and not run.federation.noise_rate.any(),
    "high losses draw {who} to clients, and wrong labels ({label_noise}) make losses high, too",
)
NO_BATCH_NORM = Want(
    lambda run: None if run.batch_norm is None else not run.batch_norm,
    "the network has batch norm, whose statistics are averaged over samples whatever {who} makes of the parameters: "
    "they are not quite those of the model that comes of it (group norm has none)",
)
