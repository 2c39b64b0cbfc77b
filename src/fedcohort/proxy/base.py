"""The contract of a proxy set, unlabelled inputs of the server, with the random draw of inputs that proxy sets share.

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
from fedcohort.data.row_hashes import hash_rows
from fedcohort.errors import DataError, OptionError
from fedcohort.rng import new_generator


class Proxy(Component, Protocol):
    """A set of inputs without labels that the server holds (proxy set).

    Attributes:
        has_inputs: whether the server holds inputs; false only for proxy=none.
    """

    @property
    def has_inputs(self) -> bool:
        return True

    @abstractmethod
    def inputs(self, federation: Federation, seed: int) -> Tensor | None:
        """Return the server's inputs, [n, *shape of a sample], or None; they depend on the arguments only.

        Args:
            federation: data of the run.
            seed: value of the option `data_seed`.

        Raises:
            OptionError, DataError: the inputs do not exist, or do not fit the data of the run.
        """


def draw_inputs(inputs: Tensor, n_inputs: int | None, rows_description: str, seed: int) -> Tensor:
    """Return `n_inputs` random rows of `inputs` [rows, ...] in the order of the rows, or all rows for None.

    Args:
        inputs: rows to draw from, [rows, ...].
        n_inputs: number of rows to draw; None for all.
        rows_description: what the rows are, for the message.
        seed: value of the option `data_seed`.

    Raises:
        OptionError: there are fewer rows than `n_inputs`.
    """
    if n_inputs is None:
        return inputs
    if n_inputs > len(inputs):
        raise OptionError(
            f"proxy.n must be at most {len(inputs)}, the number of {rows_description}, or null for all of them, got "
            f"{n_inputs}"
        )
    return inputs[torch.from_numpy(np.sort(new_generator(seed, "proxy").choice(len(inputs), n_inputs, replace=False)))]


def check_proxy_inputs(inputs: Tensor, source_name: str, federation: Federation) -> Tensor:
    """Return `inputs` if they fit the run's samples, are no test samples, and mostly no samples of clients.

    Args:
        inputs: candidate inputs of a proxy set, [n, ...].
        source_name: name of their source, for messages.
        federation: data of the run.

    Raises:
        DataError: shape or type differ, one of the inputs is in the test set, or at least half of them are samples of
            clients, before or after feature noise.
    """
    sample_shape = tuple(federation.server_test.x.shape[1:])
    if tuple(inputs.shape[1:]) != sample_shape:
        raise DataError(
            f"{source_name}: samples have the shape {list(inputs.shape[1:])}, but those of dataset={federation.name} "
            f"have {list(sample_shape)}: choose inputs of this shape"
        )
    if inputs.dtype != federation.server_test.x.dtype:
        input_dtypes = (inputs.dtype, federation.server_test.x.dtype)
        proxy_dtype, run_dtype = (str(dtype).removeprefix("torch.") for dtype in input_dtypes)
        raise DataError(
            f"{source_name}: the inputs are {proxy_dtype}, but those of dataset={federation.name} are {run_dtype}; set "
            "dataset.pixels=float32 if the dataset has this option"
        )
    input_hashes = hash_rows(inputs.numpy())
    if n_test_inputs := np.isin(input_hashes, hash_rows(federation.server_test.x.cpu().numpy())).sum():
        raise DataError(
            f"{source_name}: {n_test_inputs} inputs are also in the run's test set, whose accuracy would be too "
            "high: remove them"
        )
    if np.isin(input_hashes, _hash_client_rows(federation)).sum() * 2 >= len(inputs):
        raise DataError(f"{source_name}: the inputs are samples of the clients: choose others, or proxy=client_heldout")
    return inputs


def _hash_client_rows(federation: Federation) -> UInt64[np.ndarray, "rows"]:
    """Return a hash of every training and validation sample of the clients of `federation`, uint64 [rows].

    Samples with feature noise are included with and without their noise.
    """
    hash_arrays = [hash_rows(client_samples.x.cpu().numpy()) for client_samples in (federation.train, federation.val)]
    return np.concatenate(
        hash_arrays if federation.clean_row_hashes is None else [*hash_arrays, federation.clean_row_hashes]
    )
