"""What a client can be asked for, or the server measures itself.

A word is a file here: `signal/<word>.py` with a module-level `signal`. Every signal states what it costs (bytes up,
forward passes) and what it reveals about a client; the ledger charges it. `requirement` must hold of the run where it
is given. `knowable` is false of what no server could be told: whoever reads it is a yardstick, and is marked as one at
start-up and in tables.
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, get_args

import numpy as np

import fedcohort.signal
from fedcohort.component import Requirement
from fedcohort.contracts import array, broken, describe, integer, number, tensor, typed
from fedcohort.errors import ComponentError, IncompatibleConfig
from fedcohort.types import ClientUpdate, Ids, Values

if TYPE_CHECKING:
    from torch import Tensor, nn


class Lab(Protocol):
    """The place where a probe is measured: the global model w_t beside the clients' data."""

    def mean_over_samples(self, split: str, clients: Ids, per_sample: "Callable[[Tensor, Tensor], Tensor]") -> Values:
        """The mean of `per_sample(log_probs [B, C], labels [B]) -> [B]` on each `split`, [len(clients)].

        Of samples that have several targets the mean over them is taken first.

        split: "train" (T_i) or "val" (V_i). NaN for a client with no samples there.
        """
        ...

    def per_sample_losses(self, client: int) -> Values:
        """Return the cross-entropy of w_t on each sample of T_k, in nats, [n_k]."""
        ...

    def samples(self, client: int) -> "tuple[Tensor, Tensor]":
        """Return inputs and labels of T_k."""
        ...

    def loss(self, network: "nn.Module", x: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean cross-entropy of a network on samples, in nats."""
        ...

    def copy(self) -> "nn.Module":
        """Return the network with w_t in it, to be changed at will."""
        ...

    def gradient(self, client: int) -> "Tensor":
        """Return the gradient at w_t of the mean cross-entropy over T_k, [P]."""
        ...

    def train(self, round: int, client: int) -> ClientUpdate:
        """Return what a client that trains from w_t as in this round would send; nobody keeps it.

        It trains on the samples that the run's sample selection takes, where these can be foreseen
        (`component.FORESEEN_SAMPLES`), without the hooks of the aggregator and of the regulariser.
        """
        ...

    def losses_after(self, update: "Tensor", clients: Ids) -> Values:
        """Return the mean cross-entropy over each T_k of w_t + update, in nats, [len(clients)]."""
        ...

    def server_loss(self) -> float:
        """Return the mean cross-entropy of w_t on the server's validation set, in nats."""
        ...

    def server_loss_after(self, update: "Tensor") -> float:
        """Return the mean cross-entropy of w_t + update on the server's validation set, in nats."""
        ...


@dataclass(frozen=True)
class Static:
    """A signal that is sent once, when a client registers.

    `fact` is its name among those of the federation (`round/parts.py`).

    A fact is one number or a row of numbers a client; bytes_up is that of one number. 0 for what the server knows.
    """

    reveals: str
    bytes_up: int
    fact: str
    requirement: Requirement | None = None
    knowable: bool = True


@dataclass(frozen=True)
class Measured:
    """A signal asked of clients about w_t: a mean over their own samples, for one forward pass.

    split: "train" (T_i) or "val" (V_i). per_sample(log_probabilities [B, C], labels [B], options) -> [B].
    """

    reveals: str
    bytes_up: int
    split: str
    per_sample: "Callable[[Tensor, Tensor, Mapping[str, float]], Tensor]"
    requirement: Requirement | None = None
    passes: float = 1.0

    def measure(self, lab: Lab, clients: Ids, options: Mapping[str, float]) -> Values:
        """The clients' answers, float64 [len(clients)]."""

        def per_sample(logp: "Tensor", y: "Tensor") -> "Tensor":
            values = self.per_sample(logp, y, options)
            tensor("the result of per_sample of a signal", values, tuple(y.shape))
            return values

        return lab.mean_over_samples(self.split, clients, per_sample)


@dataclass(frozen=True)
class Computed:
    """A signal asked of clients about w_t: anything that they can work out of it and T_k.

    compute(lab, round, clients, options) -> float64 [len(clients)] or [len(clients), d]; every process computes all of
    it.

    Attributes:
        bytes_up: of one number.
        passes: the client's work in forward passes over T_k (a gradient is three), where it depends on more a function
            of the options and the clients' label counts [len(clients), C], [len(clients)]. jobs(options): clients of
            those asked that do a whole job from w_t for it and send their updates; all those asked then get the model
            that comes of it.
    """

    reveals: str
    bytes_up: int
    passes: "float | Callable[[Mapping[str, Any], np.ndarray], Values]"
    compute: "Callable[[Lab, int, Ids, Mapping[str, Any]], np.ndarray]"
    requirement: Requirement | None = None
    split: str = "train"
    jobs: "Callable[[Mapping[str, Any]], Sequence[int]] | None" = None
    knowable: bool = True


@dataclass(frozen=True)
class ServerMeasured:
    """A signal that the server measures of w_t on its own data: one number, known before it asks anybody.

    A selector finds it in its round's context. No client is asked, none can lie about it. measure(lab) -> the number;
    every process measures all of it.
    """

    reveals: str
    measure: "Callable[[Lab], float]"
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class RawUpdate:
    """The signal that is the update itself, y - w_t, float64 [arrived, P].

    The server has it anyway; all of them are kept for a round.
    """

    reveals: str
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class Derived:
    """A signal that the server works out of the updates and its own data.

    No client is asked, and all updates are kept.

    make(lab, updates [arrived, P]) -> what a reader finds in the outcome: float64 numbers, [arrived] or [arrived, d],
    which are logged as those that clients tell, or a function to be called. Once a round, whoever reads it.
    pairs: a row has a number for each of those who arrived, in their order; rounds are as wide as many arrived.
    """

    reveals: str
    make: "Callable[[Lab, Tensor], Any]"
    bytes_up: int = 0
    requirement: Requirement | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Reported:
    """A signal that is sent with the update, or read off it by the server (bytes_up = 0).

    passes: forward passes over T_k that the client makes for it once it has trained.
    """

    reveals: str
    bytes_up: int
    read: Callable[[ClientUpdate], float]
    requirement: Requirement | None = None
    passes: float = 0.0


Signal = Static | Measured | Computed | Reported | RawUpdate | Derived | ServerMeasured
Probed = Measured | Computed


def own_words() -> list[str]:
    """Return the words of all signals that stand here, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(fedcohort.signal.__path__) if m.name != "base")


def find(word: str) -> Signal:
    """Return the signal behind `word`.

    A word is `fedcohort/signal/<word>.py`, or a dotted module of your own with a `signal` in it. Raises
    `IncompatibleConfig` for any other.
    """
    name = word if "." in word else f"fedcohort.signal.{word}"
    if not _exists(name):
        raise IncompatibleConfig(f"no signal is called {word!r}; there are: {', '.join(own_words())}")
    try:
        found: Signal = importlib.import_module(name).signal
    except Exception as error:
        hint = "; wants is called requirement now" if "'wants'" in str(error) else ""
        raise ComponentError(f"the signal {word!r} can't be imported: {describe(error, name)}{hint}") from error
    if not isinstance(found, Signal):
        kinds = ", ".join(kind.__name__ for kind in get_args(Signal))
        raise broken(f"`signal` of the signal {word!r}", f"one of {kinds}", found)
    return _verify(word, found)


@cache
def _verify(word: str, signal: Signal) -> Signal:
    """Check what a signal says of itself, once. Raises `ComponentError`."""
    who = f"the signal {word!r}: "
    integer(f"{who}bytes_up", signal.bytes_up, 0)
    passes = getattr(signal, "passes", 0.0)
    if not callable(passes):
        number(f"{who}passes", passes, 0.0)
    if (split := getattr(signal, "split", "train")) not in ("train", "val"):
        raise broken(f"{who}split", "train or val", split)
    if signal.requirement is not None:
        typed(f"{who}requirement", signal.requirement, Requirement)
    for name in ("per_sample", "compute", "read", "make", "measure"):
        if not callable(getattr(signal, name, verify_answers)):
            raise broken(f"{who}{name}", "a function", getattr(signal, name))
    return signal


def verify_answers(word: str, values: object, n: int) -> np.ndarray:
    """Return the answers to a signal: a number, or a row of numbers, for each of n clients. Raises `ComponentError`."""
    shape = (n, *getattr(values, "shape", ())[1:2])
    array(f"the signal {word!r}: the result", values, shape, "if", nan=True)
    return np.asarray(values)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # of a package above it
        return False


def unknowable(words: Iterable[str]) -> list[str]:
    """Return those of `words` that no server could know, sorted."""
    return sorted(word for word in words if not getattr(find(word), "knowable", True))
