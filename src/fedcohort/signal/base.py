"""The kinds of signals, and how a signal is found by its name.

A signal is a number, or a row of numbers, that a client reports, or that the server measures. Its
module `signal/<name>.py` holds an object `signal` of one of the classes below, whose fields are:

    reveals:  what the server learns about a client
    bytes_up:  bytes of one number, which the ledger charges; 0 for what the server knows
    passes:  the client's work in forward passes over its samples, which the ledger charges
    requirement:  what must hold of the run, or None
    knowable:  False for signals that no server could receive; a method that reads one is an oracle, and marked so
"""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

import fedcohort.signal
from fedcohort.component import Requirement
from fedcohort.contracts import (
    check_answers,
    check_integer,
    check_number,
    check_tensor,
    check_type,
    contract_error,
    describe_exception,
)
from fedcohort.errors import ComponentError, IncompatibleConfig
from fedcohort.types import ClientUpdate, Ids, Values

if TYPE_CHECKING:
    from torch import Tensor

    from fedcohort.signal.lab import Lab, ReadyShare


@dataclass(frozen=True)
class Static:
    """A signal that is sent once, when a client registers.

    Attributes:
        fact: its name among the facts of the federation (`round/components.py`), a number or a row for each client.
    """

    reveals: str
    bytes_up: int
    fact: str
    requirement: Requirement | None = None
    knowable: bool = True


@dataclass(frozen=True)
class Measured:
    """A signal queried about w_t: a mean over the client's samples, for one forward pass.

    Attributes:
        split: "train" (T_i) or "val" (V_i).
        per_sample: function of log-probabilities [B, C], labels [B] and options that returns a number per sample, [B].
    """

    reveals: str
    bytes_up: int
    split: str
    per_sample: "Callable[[Tensor, Tensor, Mapping[str, float]], Tensor]"
    requirement: Requirement | None = None
    passes: float = 1.0

    def measure(self, lab: "Lab", clients: Ids, options: Mapping[str, float]) -> Values:
        """Return the mean of the signal over each queried client's samples, float64 [len(clients)]."""

        def per_sample(logp: "Tensor", labels: "Tensor") -> "Tensor":
            sample_values = self.per_sample(logp, labels, options)
            check_tensor("the result of per_sample of a signal", sample_values, tuple(labels.shape))
            return sample_values

        return lab.mean_over_samples(self.split, clients, per_sample)


@dataclass(frozen=True)
class Computed:
    """A signal queried about w_t: anything that a client can compute from it and its training set.

    Attributes:
        passes: a number (a gradient is three), or a function of options and label counts [n, C] that returns [n].
        compute: function of (lab, round, clients, options) that returns float64 [n] or [n, d] in every process.
        jobs: function of the options that returns the clients which train a whole job from w_t for it and send their
            updates. All queried clients then receive the resulting model.
        trains: whether all queried clients train a whole job for it; those that are selected send that update.
        is_gradient: whether it is a client's gradient or update, or much of it, which secure aggregation would hide.
    """

    reveals: str
    bytes_up: int
    passes: "float | Callable[[Mapping[str, Any], np.ndarray], Values]"
    compute: "Callable[[Lab, int, Ids, Mapping[str, Any]], np.ndarray]"
    requirement: Requirement | None = None
    split: str = "train"
    jobs: "Callable[[Mapping[str, Any]], Sequence[int]] | None" = None
    trains: bool = False
    is_gradient: bool = False
    knowable: bool = True


@dataclass(frozen=True)
class Forecast:
    """A signal queried without w_t: what devices expect of their availability. It takes no virtual time."""

    reveals: str
    bytes_up: int
    compute: "Callable[[ReadyShare, Ids, Mapping[str, Any]], Values]"  # of share, clients and options; float64 [n]
    requirement: Requirement | None = None


@dataclass(frozen=True)
class ServerMeasured:
    """A signal that the server measures of w_t on its own data: one number, known before any query.

    A selector finds it in its round's context. No client is queried, and no client can falsify it.

    Attributes:
        measure: function of the lab that returns the number; every process computes it.
    """

    reveals: str
    measure: "Callable[[Lab], float]"
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class RawUpdate:
    """A signal that is the clients' updates y - w_t themselves, float64 [arrived, P].

    The server receives it anyway; all updates of a round are kept for it.
    """

    reveals: str
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class Derived:
    """A signal that the server computes from the updates and its own data, once a round.

    No client is queried, and all updates of a round are kept.

    Attributes:
        make: function of the lab and the updates [arrived, P] that returns float64 numbers, [arrived] or [arrived, d],
            which are logged, or a function that readers call.
        pairs: whether a row has a number for each arrival, in their order, so that its width differs between rounds.
    """

    reveals: str
    make: "Callable[[Lab, Tensor], Any]"
    bytes_up: int = 0
    requirement: Requirement | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Reported:
    """A signal that is sent with the update, or computed from it by the server (bytes_up = 0).

    Attributes:
        read: function of the update that returns the number.
        passes: forward passes over T_k that the client makes for it after training.
        is_gradient: whether the server computes it from the client's update, which secure aggregation would hide.
    """

    reveals: str
    bytes_up: int
    read: Callable[[ClientUpdate], float]
    requirement: Requirement | None = None
    passes: float = 0.0
    is_gradient: bool = False


Signal = Static | Measured | Computed | Forecast | Reported | RawUpdate | Derived | ServerMeasured
ModelQuery = Measured | Computed  # clients receive w_t for it
QueriedSignal = ModelQuery | Forecast
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})  # of a signal that is queried without options


def list_signals() -> list[str]:
    """Return the names of all signals of this package, sorted."""
    return sorted(m.name for m in pkgutil.iter_modules(fedcohort.signal.__path__) if m.name not in ("base", "lab"))


def find_signal(signal_name: str) -> Signal:
    """Return the signal with this name.

    Args:
        signal_name: a module of `fedcohort/signal/`, or the dotted name of another module with a `signal` in it.

    Raises:
        IncompatibleConfig: no signal has this name.
        ComponentError: its module cannot be imported, or its `signal` is of another class.
    """
    module_name = signal_name if "." in signal_name else f"fedcohort.signal.{signal_name}"
    if not _module_exists(module_name):
        raise IncompatibleConfig(f"no signal is called {signal_name!r}; there are: {', '.join(list_signals())}")
    try:
        signal: Signal = importlib.import_module(module_name).signal
    except Exception as error:
        renamed_hint = "; wants is called requirement now" if "'wants'" in str(error) else ""
        raise ComponentError(
            f"the signal {signal_name!r} can't be imported: {describe_exception(error, module_name)}{renamed_hint}"
        ) from error
    if not isinstance(signal, Signal):
        class_names = ", ".join(kind.__name__ for kind in get_args(Signal))
        raise contract_error(f"`signal` of the signal {signal_name!r}", f"one of {class_names}", signal)
    return _check_fields(signal_name, signal)


@cache
def _check_fields(signal_name: str, signal: Signal) -> Signal:
    """Return the signal, whose fields are checked once; raise `ComponentError` for a field of another kind."""
    message_start = f"the signal {signal_name!r}: "
    check_integer(f"{message_start}bytes_up", signal.bytes_up, 0)
    if not callable(passes := getattr(signal, "passes", 0.0)):
        check_number(f"{message_start}passes", passes, 0.0)
    if (split := getattr(signal, "split", "train")) not in ("train", "val"):
        raise contract_error(f"{message_start}split", "train or val", split)
    if signal.requirement is not None:
        check_type(f"{message_start}requirement", signal.requirement, Requirement)
    for field in ("per_sample", "compute", "read", "make", "measure"):
        if not callable(getattr(signal, field, check_answers)):
            raise contract_error(f"{message_start}{field}", "a function", getattr(signal, field))
    return signal


def _module_exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except (ImportError, ValueError):  # a package above it does not exist
        return False


def unknowable_signals(signal_names: Iterable[str]) -> list[str]:
    """Return the signals of `signal_names` that no server could receive, sorted."""
    return sorted(name for name in signal_names if not getattr(find_signal(name), "knowable", True))
