"""The contract of an attack: some clients report false values, send false updates or train on false labels.

The server's methods read the false values. Costs and the federation's own metrics are those of the true ones.

A false update replaces the client's trained one at the server, after the codec. It is 0 in tensors that the client does
not send (`Selection.upload`). Signals that the server derives from an update are those of the false one. Buffers and
the vectors of client hooks stay as trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from jaxtyping import Float, Num

from fedcohort import ranges
from fedcohort.component import Component
from fedcohort.types import Ids

if TYPE_CHECKING:
    from torch import Tensor

ReportedValues = Num[np.ndarray, "_n *_d"]  # integers of some signals that are sent at registration


@dataclass(frozen=True)
class UpdateStats:
    """Statistics of a round's updates that its attackers know.

    Mean and deviation of a parameter are over the updates that have it: clients may leave tensors of the model out
    (`Selection.upload`).

    Attributes:
        mean: mean of the updates that the attackers know, float64 [P]; 0 in a tensor that no known update has; None if
            they know no update.
        std: standard deviation of the known updates (divisor n - 1) in each parameter, float64 [P]. It is 0 in a tensor
            that one or no known update has, and None if they know no update.
        n_honest: number of clients that trained honestly and whose updates arrived.
        n_attackers: number of attackers whose updates arrived.
    """

    mean: "Float[Tensor, 'p'] | None"
    std: "Float[Tensor, 'p'] | None"
    n_honest: int
    n_attackers: int


class Attack(Component, Protocol):
    """An attack: some clients report false values, send false updates or train on false labels; none by default.

    Attributes:
        falsifies_updates: whether attackers replace the updates that they trained.
        falsifies_labels: whether attackers replace the labels of their training and validation samples.
    """

    falsifies_updates: ClassVar[bool] = False
    falsifies_labels: ClassVar[bool] = False

    @property
    def known_updates(self) -> str:
        """Return whose updates the attackers know: "nothing", "own" for the attackers', "honest" for the others'."""
        return "nothing"

    @property
    def falsified_signals(self) -> frozenset[str]:
        """Return the names of the signals whose reports attackers falsify."""
        return frozenset()

    def attacker_ids(self, n_clients: int, rng: np.random.Generator) -> Ids:
        """Return the sorted ids of the attackers, int64 [attackers], which are the same in all rounds.

        Args:
            n_clients: number of clients.
            rng: random generator seeded by the run's seed and "attack".
        """
        return np.empty(0, dtype=np.int64)

    def falsify(self, signal: str, values: ReportedValues) -> ReportedValues:
        """Return the attackers' false reports of a signal, with the shape of `values`.

        Args:
            signal: name of the signal.
            values: the true values, one number or row per attacker, [attackers, ...].
        """
        return values

    def send(self, update: "Float[Tensor, 'p']", stats: UpdateStats, rng: np.random.Generator) -> "Float[Tensor, 'p']":
        """Return the update that an attacker sends, [P].

        Args:
            update: the update that the attacker trained, float64 [P].
            stats: statistics of the updates that the attackers of the round know.
            rng: random generator seeded by the run's seed, "attack_update", the round and the client.
        """
        return update

    def relabel(self, labels: Ids, n_classes: int, rng: np.random.Generator) -> Ids:
        """Return the labels that an attacker's samples have in all rounds, int64 [n].

        It is called for the training samples and, if the attacker has any, for the validation samples.

        Args:
            labels: labels of the attacker's samples without the attack, int64 [n], n > 0.
            n_classes: number of classes.
            rng: random generator seeded by the run's seed, the client, and "attack_labels" for training samples or
                "attack_val_labels" for validation samples.
        """
        return labels


@dataclass(frozen=True)
class AttackByShare(Attack):
    """An attack by a share of the clients; attacks of equal share have the same attackers at the same seed.

    Attributes:
        fraction: share of the clients that attack, in [0, 1], rounded up to a number of clients.
    """

    fraction: float

    def __post_init__(self) -> None:
        ranges.number("fraction", self.fraction, "[0, 1]")

    def notices(self, attack_name: str) -> Sequence[str]:
        """Return a start-up notice if no client attacks; `attack_name` is the value of the option `attack`."""
        return () if self.fraction else (f"attack={attack_name} has no effect with attack.fraction=0",)

    def attacker_ids(self, n_clients: int, rng: np.random.Generator) -> Ids:
        return np.sort(rng.choice(n_clients, int(np.ceil(self.fraction * n_clients - 1e-9)), replace=False))


@dataclass(frozen=True)
class Colluding(AttackByShare):
    """An attack on updates whose attackers know updates of the round.

    Attributes:
        knows: updates of which the attackers know mean and deviation: those of the other clients ("honest"), or those
            that the attackers trained ("own").
    """

    knows: str

    falsifies_updates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ranges.choice("knows", self.knows, "honest", "own")

    @property
    def known_updates(self) -> str:
        return self.knows
