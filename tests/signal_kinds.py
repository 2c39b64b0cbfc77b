"""Find a signal with its kind as the static type."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Computed, Derived, Measured, Reported, find_signal
from fedcohort.types import ClientUpdate, Ids, Values

Kind = TypeVar("Kind", Measured, Computed, Derived, Reported)


def find_measured(name: str) -> Measured:
    return _find(Measured, name)


def find_computed(name: str) -> Computed:
    return _find(Computed, name)


def find_derived(name: str) -> Derived:
    return _find(Derived, name)


def find_reported(name: str) -> Reported:
    return _find(Reported, name)


def _find(kind: type[Kind], name: str) -> Kind:
    signal = find_signal(name)
    assert isinstance(signal, kind)
    return signal


def count_passes(name: str, options: Mapping[str, Any], counts: np.ndarray) -> Values:
    """Return the passes of a signal whose work depends on options and label counts."""
    passes = find_computed(name).passes
    assert callable(passes)
    return passes(options, counts)


class UnimplementedAccess(SignalAccess):
    """SignalAccess in which every measurement raises; tests override the methods that their signal uses."""

    server_passes = 0

    def mean_over_samples(self, split: str, clients: Ids, per_sample: Callable[[Tensor, Tensor], Tensor]) -> Values:
        raise NotImplementedError

    def sum_over_samples(self, clients: Ids, per_sample: Callable[[Tensor, Tensor], Tensor], width: int) -> np.ndarray:
        raise NotImplementedError

    def per_sample_losses(self, client: int) -> Values:
        raise NotImplementedError

    def samples(self, client: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(network(x), y)

    def copy(self) -> nn.Module:
        raise NotImplementedError

    def gradient(self, client: int) -> Tensor:
        raise NotImplementedError

    def train(self, round: int, client: int) -> ClientUpdate:
        raise NotImplementedError

    def losses_after(self, update: Tensor, clients: Ids) -> Values:
        raise NotImplementedError

    def server_loss(self) -> float:
        raise NotImplementedError

    def server_loss_after(self, update: Tensor) -> float:
        raise NotImplementedError

    def server_accuracy_after(self, update: Tensor) -> tuple[float, float]:
        raise NotImplementedError
