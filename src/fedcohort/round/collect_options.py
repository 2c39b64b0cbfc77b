"""The parts of clients' updates that the server keeps in a round."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from fedcohort.types import ClientUpdate


@dataclass(frozen=True)
class CollectorOptions:
    """The parts of updates that a collector keeps.

    Attributes:
        upload_names: names of the vectors that client hooks send.
        averaged_uploads: names of the uploads that are averaged with the weights of the updates; others are summed.
        vector_lengths: number of floats of each vector that clients keep, by name; a shorter vector is padded.
        report_readers: functions that read a value that the client reports from its update, by signal.
        keeps_updates: whether the matrix of updates, [clients, P], is kept.
        uses_second_moments: whether batch-norm variances are averaged by second moments.
        max_update_norm: largest norm of an update that is included.
        stored_dtype: type of the vectors that clients keep, which a process without clients cannot infer.
    """

    upload_names: Sequence[str] = ()
    averaged_uploads: Collection[str] = ()
    vector_lengths: Mapping[str, int] = field(default_factory=dict)
    report_readers: Mapping[str, Callable[[ClientUpdate], float]] = field(default_factory=dict)
    keeps_updates: bool = False
    uses_second_moments: bool = False
    max_update_norm: float = math.inf
    stored_dtype: torch.dtype = torch.float32
