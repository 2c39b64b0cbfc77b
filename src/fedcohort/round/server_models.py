"""Networks with which an aggregator works on the server after a round's training (`agg.base.ServerModels`)."""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.data.federation import Federation
from fedcohort.flat import FlatModel, TensorBlock
from fedcohort.process_ranks import count_processes, reduce_sum
from fedcohort.rng import new_generator
from fedcohort.training.forward_batches import find_batch_size

PassCounter = Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]


class RoundModels:
    """Makes and evaluates networks for an aggregator in one round; every rank does all the work.

    Args:
        global_model: the global model before the server's step.
        federation: data of the run.
        seed: seed of the run.
        round: number of the round.
        buffers: mean float buffers of the clients that arrived, [B].

    Attributes:
        passes: cost in forward passes: 1 per sample in a forward pass, and 2 more if a gradient is computed.
    """

    def __init__(self, global_model: FlatModel, federation: Federation, seed: int, round: int, buffers: Tensor) -> None:
        self.server, self.federation = global_model, federation
        self.seed, self.round, self.buffers = seed, round, buffers
        self.has_made_network = False  # whether the aggregator has made a network
        self.passes = 0

    @property
    def proxy(self) -> Tensor:
        if self.federation.proxy is None:
            raise ValueError(
                "the server holds no proxy inputs: an aggregator that reads them must declare "
                "requirements = {PROXY_INPUTS}"
            )
        return self.federation.proxy

    @torch.no_grad()
    def model(self, update: Tensor, buffers: Tensor | None) -> nn.Module:
        self.has_made_network = True
        network = copy.deepcopy(self.server.network)
        layout, w = self.server.layout, self.server.w.double() + update
        tensor_by_name = {**dict(network.named_parameters()), **dict(network.named_buffers())}
        _copy_to_tensors(tensor_by_name, layout.parameters, w)
        _copy_to_tensors(tensor_by_name, layout.buffers, self.buffers if buffers is None else buffers)
        network.register_forward_hook(self._make_pass_counter())
        return network

    def _make_pass_counter(self) -> PassCounter:
        """Return a forward hook that counts the forward and backward passes of a network.

        It is a function because copies of a network share it, whereas a bound method would be copied with `self`.
        """

        def count_passes(network: nn.Module, inputs: tuple[Tensor, ...], network_logits: Tensor) -> None:
            n_samples = len(network_logits)
            self.passes += n_samples

            def count_backward_pass(gradients: tuple[Tensor | None, ...]) -> None:
                self.passes += 2 * n_samples

            if network_logits.grad_fn is not None:
                network_logits.grad_fn.register_prehook(count_backward_pass)

        return count_passes

    @torch.no_grad()
    def update_of(self, network: nn.Module) -> Tensor:
        flat_parameters = torch.empty_like(self.server.w, dtype=torch.float64)
        parameter_by_name = dict(network.named_parameters())
        for tensor_block in self.server.layout.parameters:
            tensor_block.make_view(flat_parameters).copy_(parameter_by_name[tensor_block.name])
        return flat_parameters - self.server.w

    def average_over_ranks(self, model_displacement: Tensor) -> Tensor:
        """Return the mean of `model_displacement` over ranks, [P], as accelerators may differ in the last bits."""
        may_ranks_differ = self.has_made_network and count_processes() > 1
        return reduce_sum(model_displacement) / count_processes() if may_ranks_differ else model_displacement

    @torch.no_grad()
    def accuracy(self, network: nn.Module) -> float:
        network.eval()
        validation_data = self.federation.server_val
        samples_at_once = find_batch_size(
            self.server.network, validation_data.x
        )  # not of `network`, whose passes are counted
        batches = zip(*(torch.split(t, samples_at_once) for t in (validation_data.x, validation_data.y)), strict=True)
        return sum(int((network(x).argmax(1) == y).sum()) for x, y in batches) / len(validation_data.y)

    def rng(self, purpose: str) -> np.random.Generator:
        return new_generator(self.seed, purpose, self.round)


def _copy_to_tensors(
    tensor_by_name: dict[str, Tensor], tensor_blocks: tuple[TensorBlock, ...], flat_vector: Tensor
) -> None:
    for tensor_block in tensor_blocks:
        tensor_by_name[tensor_block.name].copy_(tensor_block.make_view(flat_vector))
