"""The contract of a proxy set, and the draw that all of them share.

What is not the clients' own kind of data teaches less: tables say which proxy a number was made with.
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
from fedcohort.rng import generator


class Proxy(Component, Protocol):
    """Inputs that the server holds, without labels.

    Attributes:
        holds: whether there are any.
    """

    @property
    def holds(self) -> bool:
        return True

    @abstractmethod
    def inputs(self, federation: Federation, seed: int) -> Tensor | None:
        """float32 [n, *shape of a sample], None without any; seed: `data_seed`.

        A function of its arguments alone. Raises `OptionError` or `DataError`.
        """


def draw_rows(x: Tensor, n: int | None, what: str, seed: int) -> Tensor:
    """n of the rows of x in their order, all where n is None. Raises `OptionError` where there are not as many."""
    if n is None:
        return x
    if n > len(x):
        raise OptionError(f"proxy.n must be at most {len(x)}, the number of {what}, or null for all of them, got {n}")
    rows = np.sort(generator(seed, "proxy").choice(len(x), n, replace=False))
    return x[torch.from_numpy(rows)]


def foreign(x: Tensor, where: str, federation: Federation) -> Tensor:
    """x, where its samples are such as the run's, and others. Raises `DataError`. where: whose they are, for people.

    Refused are inputs of the run's test set, and data of which half or more are the clients' own, feature noise or not.
    """
    shape = tuple(federation.server_test.x.shape[1:])
    if tuple(x.shape[1:]) != shape:
        raise DataError(
            f"{where}: a sample has the shape {list(x.shape[1:])}, one of the run's dataset={federation.name} has "
            f"{list(shape)}"
        )
    if x.dtype != federation.server_test.x.dtype:
        kinds = [str(each.dtype).removeprefix("torch.") for each in (x, federation.server_test.x)]
        raise DataError(
            f"{where}: the inputs are {kinds[0]}, those of the run's dataset={federation.name} are {kinds[1]}; say "
            "dataset.pixels=float32 where the dataset has it"
        )
    found = row_hashes(x.numpy())
    if tested := np.isin(found, row_hashes(federation.server_test.x.cpu().numpy())).sum():
        raise DataError(f"{where}: {tested} inputs are in the run's test set")
    if np.isin(found, _hashes_of_clients(federation)).sum() * 2 >= len(x):
        raise DataError(f"{where}: the inputs are the clients' own: choose others, or proxy=client_heldout")
    return x


def _hashes_of_clients(federation: Federation) -> UInt64[np.ndarray, "rows"]:
    """Of all T and V as they are, and as they were before feature noise."""
    hashes = [row_hashes(part.x.cpu().numpy()) for part in (federation.train, federation.val)]
    return np.concatenate(hashes if federation.undisturbed is None else [*hashes, federation.undisturbed])
