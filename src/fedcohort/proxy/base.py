"""The contract of a proxy set, unlabelled inputs of the server, with the random choice that proxy sets share.

Results depend on the proxy set: inputs from another distribution than the clients' data are less useful.
"""

from abc import abstractmethod
from typing import Protocol

import numpy as np
import torch
from jaxtyping import UInt64
from torch import Tensor

from fedcohort.component import Component
from fedcohort.data.federation import Federation
from fedcohort.data.row_hashes import row_hashes
from fedcohort.errors import DataError, OptionError
from fedcohort.rng import new_generator


class Proxy(Component, Protocol):
    """A proxy set: inputs without labels that the server holds.

    Attributes:
        has_inputs: whether the server holds such inputs.
    """

    @property
    def has_inputs(self) -> bool:
        return True

    @abstractmethod
    def inputs(self, federation: Federation, seed: int) -> Tensor | None:
        """Return the inputs, [n, *shape of a sample], or None; they depend on the arguments only.

        Args:
            federation: data of the run.
            seed: the option `data_seed`.

        Raises:
            OptionError, DataError: the inputs do not exist, or do not fit the data of the run.
        """


def draw_inputs(x: Tensor, n: int | None, name: str, seed: int) -> Tensor:
    """Return n random rows of x in their order, all rows if n is None; raise `OptionError` if x has fewer rows.

    name: description of the rows, for the message.
    """
    if n is None:
        return x
    if n > len(x):
        raise OptionError(f"proxy.n must be at most {len(x)}, the number of {name}, or null for all of them, got {n}")
    rows = np.sort(new_generator(seed, "proxy").choice(len(x), n, replace=False))
    return x[torch.from_numpy(rows)]


def check_foreign(x: Tensor, where: str, federation: Federation) -> Tensor:
    """Return x if its samples have the run's shape and type, and are neither test samples nor samples of clients.

    Args:
        x: candidate inputs of a proxy set.
        where: source of the inputs, for messages.
        federation: data of the run.

    Raises:
        DataError: shape or type differ, one of the inputs is in the test set, or at least half of them are samples of
            clients, before or after feature noise.
    """
    shape = tuple(federation.server_test.x.shape[1:])
    if tuple(x.shape[1:]) != shape:
        raise DataError(
            f"{where}: samples have the shape {list(x.shape[1:])}, but those of dataset={federation.name} have "
            f"{list(shape)}"
        )
    if x.dtype != federation.server_test.x.dtype:
        proxy_type, run_type = (str(inputs.dtype).removeprefix("torch.") for inputs in (x, federation.server_test.x))
        raise DataError(
            f"{where}: the inputs are {proxy_type}, but those of dataset={federation.name} are {run_type}; set "
            "dataset.pixels=float32 if the dataset has this option"
        )
    hashes = row_hashes(x.numpy())
    if n_leaked := np.isin(hashes, row_hashes(federation.server_test.x.cpu().numpy())).sum():
        raise DataError(
            f"{where}: {n_leaked} inputs are also in the run's test set, whose accuracy would be too high: remove them"
        )
    if np.isin(hashes, _hashes_of_clients(federation)).sum() * 2 >= len(x):
        raise DataError(f"{where}: the inputs are samples of the clients: choose others, or proxy=client_heldout")
    return x


def _hashes_of_clients(federation: Federation) -> UInt64[np.ndarray, "rows"]:
    """Return hashes of all rows of T and V, and of the disturbed rows before feature noise."""
    hashes = [row_hashes(part.x.cpu().numpy()) for part in (federation.train, federation.val)]
    return np.concatenate(hashes if federation.undisturbed is None else [*hashes, federation.undisturbed])
