"""Replace the labels and the updates of attackers by false ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedcohort.attack.base import Attack, UpdateStats
from fedcohort.data.federation import Federation
from fedcohort.flat import Layout
from fedcohort.rng import new_generator
from fedcohort.round.arrivals import Arrivals
from fedcohort.round.collect import Collector, ReduceFunction
from fedcohort.training.upload import TensorMask
from fedcohort.types import ClientUpdate, Ids


def falsify_client_labels(attack: Attack, attackers: Ids, federation: Federation, seed: int) -> Federation:
    """Return the federation in which the training and validation samples of attackers have false labels.

    Args:
        attack: the attack, which makes the labels.
        attackers: ids of the clients that attack.
        federation: the data with true labels.
        seed: seed of the run.
    """
    if not attack.falsifies_labels or not len(attackers):
        return federation
    train_data, val_data = (replace(shard, y=shard.y.clone()) for shard in (federation.train, federation.val))
    for shard, rng_purpose in ((train_data, "attack_labels"), (val_data, "attack_val_labels")):
        for client in attackers[np.diff(shard.offsets)[attackers] > 0].tolist():
            _, labels = shard.client_samples(client)  # a view of the copy
            rng = new_generator(seed, rng_purpose, client=client)
            false_labels = attack.relabel(labels.cpu().numpy(), federation.n_classes, rng)
            labels.copy_(torch.from_numpy(false_labels))
    return replace(federation, train=train_data, val=val_data)


@dataclass(frozen=True)
class RoundAttack:
    """The attack on the updates of one round.

    Attributes:
        attack: the attack.
        attackers: ids of all attackers of the run.
        seed: seed of the run.
        round: number of the round, from 0.
        tensor_masks: tensors that each client sends, by id; None, or no entry, for all.
    """

    attack: Attack
    attackers: Ids
    seed: int
    round: int
    tensor_masks: Mapping[int, TensorMask | None] = field(default_factory=dict)


class AttackCollector(Collector):
    """A collector of updates that replaces those of attackers by false ones, once all others have arrived.

    It keeps the attackers' updates until then, and the sums of the updates that attackers know.

    Args:
        round_attack: the attack on this round.
        collector_arguments: the arguments of `Collector`.
    """

    def __init__(self, round_attack: RoundAttack, *collector_arguments: Any) -> None:  # noqa: ANN401  those of `Collector`
        super().__init__(*collector_arguments)
        self.round_attack, self.attack = round_attack, round_attack.attack
        self.layout = collector_arguments[0]
        self.attackers = frozenset(round_attack.attackers.tolist())
        self.withheld_updates: list[ClientUpdate] = []
        # numbers of honest updates and attackers' updates, and of known updates that have each tensor of the model
        self.counts = self.update_sum.new_zeros(2 + len(self.layout.parameters))
        n_moment_entries = len(self.update_sum) if self.attack.known_updates != "nothing" else 0
        # sums of the known updates and of their squares
        self.moments = self.update_sum.new_zeros((2, n_moment_entries))

    def add_client_update(self, update: ClientUpdate) -> None:
        is_attacker = update.client in self.attackers
        self.counts[int(is_attacker)] += 1
        if self.attack.known_updates == ("own" if is_attacker else "honest") and self._is_update_valid(update):
            delta = update.delta.double()
            self.moments += torch.stack([delta, delta.square()])
            tensor_mask = self.round_attack.tensor_masks.get(update.client)
            self.counts[2:] += 1 if tensor_mask is None else torch.from_numpy(tensor_mask).to(self.counts)
        if not is_attacker:
            super().add_client_update(update)
            return
        self.withheld_updates.append(replace(update, vector=update.delta, group=None))
        if update.group is not None and self.update_matrix is None:
            self._add_update_of_group(update.group, update.client, None)

    def sum_over_ranks(self, reduce_sum: ReduceFunction, reduce_max: ReduceFunction) -> Arrivals:
        update_stats = compute_update_stats(reduce_sum(self.counts), reduce_sum(self.moments), self.layout)
        for update in self.withheld_updates:
            false_update = self._make_false_update(update, update_stats)
            update_norm = float(torch.linalg.vector_norm(false_update))
            super().add_client_update(replace(update, vector=false_update, norms=(update_norm, *update.norms[1:])))
        self.withheld_updates = []
        return super().sum_over_ranks(reduce_sum, reduce_max)

    def _make_false_update(self, update: ClientUpdate, update_stats: UpdateStats) -> Tensor:
        """Return what the attacker that trained `update` sends, [P]: 0 in the tensors that it does not send."""
        rng = new_generator(self.round_attack.seed, "attack_update", self.round_attack.round, update.client)
        false_update = self.attack.send(update.delta.double(), update_stats, rng).to(update.delta)
        tensor_mask = self.round_attack.tensor_masks.get(update.client)
        if tensor_mask is None:
            return false_update
        is_number_unsent = self.layout.repeat_for_parameters(torch.from_numpy(~tensor_mask).to(false_update.device))
        return false_update.masked_fill(is_number_unsent, 0.0)


def compute_update_stats(update_counts: Tensor, update_moments: Tensor, layout: Layout) -> UpdateStats:
    """Return the statistics of the round's updates that attackers know, of each tensor over the updates that have it.

    Args:
        update_counts: numbers of honest updates and of attackers' updates, and numbers of known updates that have each
            tensor, float64 [2 + tensors].
        update_moments: sums of the known updates and of their squares, float64 [2, P]; [2, 0] if attackers know
            nothing. An update is 0 in tensors that its client did not send.
        layout: positions of the model's tensors in its flat vector.
    """
    n_honest_updates, n_attackers = (int(n_updates) for n_updates in update_counts[:2].tolist())
    if not update_counts[2:].any():
        return UpdateStats(None, None, n_honest_updates, n_attackers)
    n = layout.repeat_for_parameters(update_counts[2:])
    mean, mean_squares = update_moments / n.clamp_min(1)
    update_variance = (mean_squares - mean.square()).clamp_min(0) * n / (n - 1).clamp_min(1)
    return UpdateStats(mean, update_variance.sqrt(), n_honest_updates, n_attackers)
