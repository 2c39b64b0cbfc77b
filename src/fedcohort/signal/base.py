"""The kinds of signals, and how a signal is found by its name.

A signal is a number, or a row of numbers, that a client reports or the server measures. Its module `signal/<name>.py`
holds an object `signal` of one of the classes below, whose fields are:

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
    check_integer,
    check_number,
    check_signal_answers,
    check_tensor,
    check_type,
    contract_error,
    describe_exception,
)
from fedcohort.errors import ComponentError, IncompatibleConfig
from fedcohort.types import ClientUpdate, Ids, Values

if TYPE_CHECKING:
    from torch import Tensor

    from fedcohort.signal.access import ReadyShareFunction, SignalAccess


@dataclass(frozen=True)
class Static:
    """A signal that a client sends once, when it registers.

    Attributes:
        fact: key of the signal's values in `round.populations.Populations.facts`, a number or a row for each client.
    """

    reveals: str
    bytes_up: int
    fact: str
    requirement: Requirement | None = None
    knowable: bool = True


@dataclass(frozen=True)
class Measured:
    """A signal queried about the global model: a mean over the client's samples, which costs one forward pass.

    Attributes:
        split: samples that the mean is over: the client's training set ("train") or validation set ("val").
        per_sample: function of log-probabilities [B, C], labels [B] and options that returns a number per sample, [B].
    """

    reveals: str
    bytes_up: int
    split: str
    per_sample: "Callable[[Tensor, Tensor, Mapping[str, float]], Tensor]"
    requirement: Requirement | None = None
    passes: float = 1.0

    def measure(self, access: "SignalAccess", clients: Ids, options: Mapping[str, float]) -> Values:
        """Return the mean of `per_sample` over each client's samples, [len(clients)], for a query with `options`."""

        def per_sample(log_probs: "Tensor", labels: "Tensor") -> "Tensor":
            sample_values = self.per_sample(log_probs, labels, options)
            check_tensor("the result of per_sample of a signal", sample_values, tuple(labels.shape))
            return sample_values

        return access.mean_over_samples(self.split, clients, per_sample)


@dataclass(frozen=True)
class Computed:
    """A signal queried about the global model w_t that a client computes from w_t and its training set.

    Attributes:
        passes: forward passes over a client's samples (a gradient: 3), or a function of options and class counts.
        compute: function of (access, round, clients, options) that returns float64 [n] or [n, d] in every process.
        jobs: function of the options that returns the clients which train a whole job from w_t for the signal and send
            their updates. All queried clients then receive the resulting model.
        trains: whether all queried clients train a whole job for the signal; the selected clients send that update.
        is_gradient: whether the signal reveals much of a client's gradient or update, which secure aggregation hides.
    """

    reveals: str
    bytes_up: int
    passes: "float | Callable[[Mapping[str, Any], np.ndarray], Values]"
    compute: "Callable[[SignalAccess, int, Ids, Mapping[str, Any]], np.ndarray]"
    requirement: Requirement | None = None
    split: str = "train"
    jobs: "Callable[[Mapping[str, Any]], Sequence[int]] | None" = None
    trains: bool = False
    is_gradient: bool = False
    knowable: bool = True


@dataclass(frozen=True)
class Forecast:
    """A signal queried without the global model: the availability that devices expect. It takes no virtual time."""

    reveals: str
    bytes_up: int
    compute: "Callable[[ReadyShareFunction, Ids, Mapping[str, Any]], Values]"  # of clients and options; float64 [n]
    requirement: Requirement | None = None


@dataclass(frozen=True)
class ServerMeasured:
    """A signal that the server measures of the global model on its own data: one number, known before any query.

    A selector finds it in its round's context. No client is queried, and no client can falsify it.

    Attributes:
        measure: function of a `SignalAccess` that returns the number; every process computes it.
    """

    reveals: str
    measure: "Callable[[SignalAccess], float]"
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class RawUpdate:
    """A signal that consists of the clients' updates, local model minus global model, float64 [arrived, P].

    The server receives them in any case; all updates of a round are kept for the component that reads the signal.
    """

    reveals: str
    bytes_up: int = 0
    requirement: Requirement | None = None


@dataclass(frozen=True)
class Derived:
    """A signal that the server computes from the updates and its own data, once a round; all updates are kept.

    Attributes:
        make: function of a `SignalAccess` and the updates [arrived, P] that returns float64 numbers, [arrived] or
            [arrived, d], which are logged, or a function that components which read the signal call.
        pairs: whether a client's row has a number for each arrived client, so that its length differs between rounds.
    """

    reveals: str
    make: "Callable[[SignalAccess, Tensor], Any]"
    bytes_up: int = 0
    requirement: Requirement | None = None
    pairs: bool = False


@dataclass(frozen=True)
class Reported:
    """A signal that is sent with the update, or computed from it by the server (bytes_up = 0).

    Attributes:
        read: function of the update that returns the number.
        passes: forward passes over its training set that the client makes for the signal after training.
        is_gradient: whether the server computes the signal from a client's update, which secure aggregation hides.
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
    return sorted(m.name for m in pkgutil.iter_modules(fedcohort.signal.__path__) if m.name not in ("base", "access"))


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
        error_message = f"the signal {signal_name!r} can't be imported: {describe_exception(error, module_name)}"
        error_message += "; wants is called requirement now" if "'wants'" in str(error) else ""
        error_message += "; its Lab is access.SignalAccess now" if "signal.lab" in str(error) else ""
        raise ComponentError(error_message) from error
    if not isinstance(signal, Signal):
        signal_class_names = ", ".join(signal_class.__name__ for signal_class in get_args(Signal))
        raise contract_error(f"`signal` of the signal {signal_name!r}", f"one of {signal_class_names}", signal)
    return _check_signal_fields(signal_name, signal)


@cache
def _check_signal_fields(signal_name: str, signal: Signal) -> Signal:
    """Return `signal` if its fields are valid. Raises `ComponentError`, with `signal_name`, for an invalid field."""
    error_prefix = f"the signal {signal_name!r}: "
    check_integer(f"{error_prefix}bytes_up", signal.bytes_up, 0)
    if not callable(passes := getattr(signal, "passes", 0.0)):
        check_number(f"{error_prefix}passes", passes, 0.0)
    if (sample_split := getattr(signal, "split", "train")) not in ("train", "val"):
        raise contract_error(f"{error_prefix}split", "train or val", sample_split)
    if signal.requirement is not None:
        check_type(f"{error_prefix}requirement", signal.requirement, Requirement)
    for field_name in ("per_sample", "compute", "read", "make", "measure"):
        if not callable(getattr(signal, field_name, check_signal_answers)):
            raise contract_error(f"{error_prefix}{field_name}", "a function", getattr(signal, field_name))
    return signal


def _module_exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except (ImportError, ValueError):  # a package above it does not exist
        return False


def find_oracle_signals(signal_names: Iterable[str]) -> list[str]:
    """Return those of the signals `signal_names` that no server could receive in practice, sorted."""
    return sorted(
        signal_name for signal_name in signal_names if not getattr(find_signal(signal_name), "knowable", True)
    )
