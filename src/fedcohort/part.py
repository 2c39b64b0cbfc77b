"""What every part of a run may say of itself, and what it may ask of the others.

A part is what a word of a config group stands for: a selector, an aggregator, a codec, ... It writes what it does, and
inherits the rest from the contract in its group's `base` module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True)
class Facts:
    """What parts may ask of the run that they are in. None: not known yet, as the data have not been read.

    Attributes:
        timed_device: work takes virtual time, so that durations carry information.
        time_passes: the virtual clock moves from round to round, by work or by the window of selection.
        plain_client: a local step is exactly y <- y - lr g, with g of the objective alone, no regulariser's.
        several_steps: some client takes more than one local step in a round.
        linear_client: local steps are linear in the gradients (SGD with momentum is, Adam is not).
        undecayed_client: no weight decay moves parameters that a codec left out.
        equal_work: the number of local steps is everybody's, not what each client's data make of epochs.
        whole_update: no codec keeps local training within a part of the parameters.
        given_labels: the objective trusts the labels that it is given.
        mean_objective: what clients minimise is the mean of their samples' losses, no function of it.
        proxy: the server holds inputs to teach networks on.
        client_val: every client has validation samples of its own.
        attributes: it is known how many samples of each class and attribute clients have.
        relative_advice: what the selector advises are shares, not weights whose very sum counts.
        unadvised_weights: the selector advises no weights at all.
        announced_deadline: clients are told a deadline before they train.
        fitting_work: no client is dropped as it can't do all that was asked by such a deadline: it does what fits.
        epochs: clients train epochs, so that fewer samples take less time; not a number of steps.
        foreseen_samples: what a client trains on is known before a round is planned, as neither the deadline nor what
            it knows of its losses decides it.
        loss_lists: clients keep a list of their samples' losses, and tell the server of it.
        plain_server: the server's step is a multiple of the aggregator's direction.
        clean_labels: no label was changed.
        mini_batches: a local step takes some of a client's samples, not all of them at once.
        device_seconds: the device's seconds are of a clock, not multiples of what a sample takes.
        one_pace: controllers of samples and deadline, where there are both, decide in the same rounds.
        one_loss: the robust loss by which the selector asks clients, if any, is the one that they train with, if any.
        asked: clients that are asked in a round.
        arriving: clients that arrive in a round, at most.
        absence: the words by which everybody would come in every round, in place of those by which some are away; ()
            where everybody does.
        batch_norm: the network has batch norm that keeps its statistics.
        smaller_update: the codec sends fewer bytes than an update of the network has, or is none.
        images: samples are images.
        classes: a sample has a class, one.
        n_params: numbers that the network trains.
    """

    timed_device: bool
    time_passes: bool
    plain_client: bool
    linear_client: bool
    undecayed_client: bool
    equal_work: bool
    whole_update: bool
    given_labels: bool
    mean_objective: bool
    proxy: bool
    client_val: bool
    relative_advice: bool
    unadvised_weights: bool
    plain_server: bool
    announced_deadline: bool
    fitting_work: bool
    epochs: bool
    foreseen_samples: bool
    loss_lists: bool
    mini_batches: bool
    device_seconds: bool
    one_pace: bool
    one_loss: bool
    several_steps: bool | None
    attributes: bool | None = None
    clean_labels: bool | None = None
    asked: int | None = None
    arriving: int | None = None
    absence: tuple[str, ...] | None = None
    batch_norm: bool | None = None
    smaller_update: bool | None = None
    images: bool | None = None
    classes: bool | None = None
    n_params: int | None = None

    @property
    def everybody(self) -> bool | None:
        """Whether all clients take part in every round."""
        return None if self.absence is None else not self.absence


@dataclass(frozen=True)
class Want:
    """Something that must hold of the run, or had better hold.

    Attributes:
        holds: whether it does; None where that isn't known yet.
        sentence: what is said where it doesn't: {who} is the word that wants it, {agg}, {codec}, ... any group's, and
            {everybody} are the words by which everybody would come in every round.
    """

    holds: Callable[[Facts], bool | None]
    sentence: str

    def or_else(self, way_out: str) -> "Want":
        """Return the same want for a part that has an option by which it goes without."""
        return replace(self, sentence=f"{self.sentence}, or {way_out}")


class Part(Protocol):
    """What a part may say of itself; each has a default, and a ClassVar will do where options decide nothing."""

    @property
    def wants(self) -> frozenset[Want]:
        """What must hold of the run, which is refused at start-up with the sentence otherwise."""
        return frozenset()

    @property
    def prefers(self) -> frozenset[Want]:
        """What had better hold of the run: it runs without, and the sentence is said at start-up."""
        return frozenset()

    def remarks(self, word: str) -> Sequence[str]:
        """Lines said at start-up, of options that are legal and not what they look like; word: that chose the part."""
        return ()


TIMED_DEVICE = Want(
    lambda run: run.timed_device,
    "{who} reads how long clients take, but device=instant takes no time: choose device=shifted_exponential",
)
ANNOUNCED_DEADLINE = Want(
    lambda run: run.announced_deadline,
    "{who} goes by the deadline that clients are told, and {deadline} tells them none: choose deadline=fixed or "
    "deadline=fedbalancer",
)
EPOCHS = Want(
    lambda run: run.epochs,
    "{who} shortens a round by training on fewer samples, but client.steps fixes the number of steps, whatever the "
    "samples: choose client.steps=null",
)
STEPS = Want(
    lambda run: not run.epochs,
    "{who} draws the samples of a fixed number of mini-batches, and clients train epochs: choose client.steps=5, one "
    "mini-batch for each of the paper's local epochs",
)
MINI_BATCHES = Want(
    lambda run: run.mini_batches,
    "{who} draws the samples of mini-batches, and client.batch=null takes all that a client has at once: choose "
    "client.batch=10",
)
DEVICE_SECONDS = Want(
    lambda run: run.device_seconds,
    "{who} goes by seconds of a clock, and those of {device} are multiples of what a sample takes, in a unit of choice",
)
ONE_PACE = Want(
    lambda run: run.one_pace,
    "{who} has one controller with {samples} in the paper, and samples.w isn't deadline.w: each decides in rounds of "
    "its own",
)
ONE_LOSS = Want(
    lambda run: run.one_loss,
    "{who} goes by the loss that clients train with in the paper, and its robust loss has other weights than that of "
    "{objective}: set selector.alpha, selector.beta and selector.A as the objective's are",
)
FORESEEN_SAMPLES = Want(
    lambda run: run.foreseen_samples,
    "{who} has clients train before a cohort is chosen, and what {samples} takes of theirs goes by the deadline or the "
    "losses of those who are in it: choose samples=all or random",
)
LOSS_LISTS = Want(
    lambda run: run.loss_lists,
    "{who} reads what clients tell of lists of losses, and with {samples} they tell nothing of one: choose "
    "samples=fedbalancer",
)
PASSING_TIME = Want(
    lambda run: run.time_passes,
    "{who} follows the virtual clock, which neither work with device=instant nor deadline.window_s=0 moves: who is "
    "ready in the first round is ready in all",
)
UNDECAYED_CLIENT = Want(
    lambda run: run.undecayed_client,
    "{who} keeps local training within what is sent, but client.weight_decay moves every parameter: choose "
    "client.weight_decay=0, or a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
FREE_UPDATE = Want(
    lambda run: run.whole_update,
    "{who} compares or corrects clients in all parameters, but the codec keeps each client's training within a random "
    "part of its own: choose a codec that works on finished updates (codec=subsample, codec=quant, or "
    "codec.mode=posthoc for codec=lowrank)",
)
ATTRIBUTES = Want(
    lambda run: run.attributes,
    "{who} reads how many samples of each class and attribute clients have, but {dataset} knows no attributes: choose "
    "dataset=cmnist",
)
CLASSES = Want(
    lambda run: run.classes,
    "{who} goes by the class of a sample, and those of {dataset} have a target for each of their places, not one: "
    "choose one that doesn't",
)
IMAGES = Want(
    lambda run: run.images,
    "{who} moves and mirrors images [channels, height, width], and the inputs of {dataset} are none: choose "
    "augmentation=none",
)
PROXY = Want(
    lambda run: run.proxy,
    "{who} teaches networks on inputs that the server holds, and it holds none (proxy=none): choose proxy=dataset, "
    "proxy=client_heldout or proxy=noise",
)
RELATIVE_ADVICE = Want(
    lambda run: run.relative_advice,
    "{who} works out weights of its own, which sum to what its method says, and {selector} advises weights whose very "
    "sum counts (an estimate without bias): choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
UNADVISED_WEIGHTS = Want(
    lambda run: run.unadvised_weights,
    "{who} weighs clients in a way of its own for a part of its step, or all of it, and the weights that {selector} "
    "advises count for the rest alone: choose agg=fedavg, or a form of the selector that advises none "
    "(selector.agg=fedavg where it has one)",
)
CLEAN_LABELS = Want(
    lambda run: run.clean_labels,
    "high losses draw {who} to clients, and wrong labels ({label_noise}) make losses high, too",
)
EVERYBODY = Want(
    lambda run: run.everybody,
    "{who} changes the weights of those who arrive alone, and so leans towards clients that train often: choose its "
    "other form (unbiased=true, where clients are drawn uniformly, or sync=mass), or {everybody}",
)
NO_BATCH_NORM = Want(
    lambda run: None if run.batch_norm is None else not run.batch_norm,
    "the network has batch norm, whose statistics are averaged over samples whatever {who} makes of the parameters: "
    "they are not quite those of the model that comes of it (group norm has none)",
)
SMALLER_UPDATE = Want(
    lambda run: run.smaller_update,
    "{who} makes no update of this network smaller: with its options every tensor is sent whole, or in more bytes",
)
