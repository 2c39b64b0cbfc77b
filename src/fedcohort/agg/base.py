"""The contract of an aggregator: what is done with the updates that arrive.

It is algebra on flat vectors. The loop adds updates up one by one in float64 (`Arrived.mean`), so that methods which
need a weighted sum alone keep memory flat in the cohort; those that need the matrix say `stacked`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from fedcohort.hook import Hook
from fedcohort.types import Ids, Population, RoundOutcome, Values

S = TypeVar("S")


@dataclass(frozen=True)
class Arrived:
    """What `direction` sees: at least one client has arrived.

    mean: sum_i p_i D_i in float64 [P], p_i from `weights` normalised over those who arrived, D_i = y_i - w_t.
    totals: sum_i of each vector that the hooks uploaded, float64 [P]. weights: p_i, aligned with `outcome.clients`.
    updates: D, [m, P] in the order of `outcome.clients`, for `stacked` aggregators, else None.
    """

    outcome: RoundOutcome
    mean: Float[Tensor, "p"]
    totals: Mapping[str, Tensor]
    weights: Values
    updates: Float[Tensor, "m p"] | None


class Aggregator(Protocol[S]):
    """needs: signals of the clients that it reads. hooks: its client half. stacked: it needs the matrix of updates.

    wants: facts that must hold of the run (`engine/compatible.py` has the words), else it is refused at start-up.
    """

    needs: ClassVar[frozenset[str]]
    stacked: ClassVar[bool]

    @property
    def wants(self) -> frozenset[str]: ...

    @property
    def hooks(self) -> tuple[Hook, ...]: ...

    def init(self, population: Population, n_params: int) -> S: ...

    def broadcast(self, state: S) -> Mapping[str, Tensor]:
        """Vectors sent to clients beside the model, by the names that the hooks download."""
        ...

    def weights(self, n_used: Ids, n_train: Ids) -> Values:
        """Raw weights of clients, before normalisation: known before training, so that sums can stream."""
        ...

    def direction(self, state: S, arrived: Arrived) -> tuple[Float[Tensor, "p"], S]:
        """The displacement that the server optimizer applies, float64 [P]. Not called in an empty round."""
        ...


def sample_weights(rule: str, n_used: Ids, n_train: Ids) -> Values:
    """rule: "used" weighs by the samples trained on, "samples" by those owned, "uniform" equally."""
    if rule == "uniform":
        return np.ones(len(n_used))
    return (n_used if rule == "used" else n_train).astype(np.float64)
