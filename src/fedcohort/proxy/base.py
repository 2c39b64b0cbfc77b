"""The contract of a proxy set, and the draw that all of them share.

What is not the clients' own kind of data teaches less: tables say which proxy a number was made with.
"""

from abc import abstractmethod
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from fedcohort.data.federation import Federation
from fedcohort.errors import DataError, OptionError
from fedcohort.part import Part
from fedcohort.rng import generator


class Proxy(Part, Protocol):
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

    Refused are inputs of the run's test set, and data of which half or more are the clients' own.
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
    if tested := count_shared(x, federation.server_test.x):
        raise DataError(f"{where}: {tested} inputs are in the run's test set")
    if count_shared(x, torch.cat([federation.train.x, federation.val.x])) * 2 >= len(x):
        raise DataError(f"{where}: the inputs are the clients' own: choose others, or proxy=client_heldout")
    return x


def count_shared(x: Tensor, among: Tensor) -> int:
    """Count the rows of x that are rows of `among`, to the bit."""
    known = {hash(row.tobytes()) for row in among.flatten(1).cpu().numpy()}
    return sum(hash(row.tobytes()) in known for row in x.flatten(1).numpy())
