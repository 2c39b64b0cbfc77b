"""Networks that the server makes are its own, and come back as the vectors that they were made of."""

import copy

import torch
from torch import nn

from agg_harness import server_only
from engine_harness import SEED
from fedcohort.data.federation import ServerSamples
from fedcohort.flat import FlatModel
from fedcohort.rng import new_generator, seeded_torch
from fedcohort.round.server_models import RoundModels
from optional_values import not_none


def conv(channels_last: bool = False) -> FlatModel:
    with seeded_torch(SEED, "weights"):
        network = nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))
    network[1].bias.requires_grad_(False)
    return FlatModel(network, channels_last)


def norm_of(network: nn.Module) -> nn.BatchNorm2d:
    assert isinstance(network, nn.Sequential)
    norm = network[1]
    assert isinstance(norm, nn.BatchNorm2d)
    return norm


def make_server_models(server: FlatModel) -> RoundModels:
    x = torch.randn(6, 2, 3, 3, generator=torch.Generator().manual_seed(1))
    return RoundModels(
        server, server_only(x[:4], ServerSamples(x, torch.tensor([0, 1, 0, 1, 0, 1]))), 5, 3, server.buffers + 1
    )


def update(server: FlatModel) -> torch.Tensor:
    return torch.linspace(-1, 1, server.layout.n_params, dtype=torch.float64)


def test_a_network_becomes_a_vector_and_back() -> None:
    for last in (False, True):
        server = conv(last)
        round_models = make_server_models(server)
        network = round_models.model(update(server), None)
        torch.testing.assert_close(round_models.update_of(network), update(server), atol=1e-6, rtol=0)
        assert not norm_of(network).bias.requires_grad


def test_both_memory_layouts_give_the_same_network() -> None:
    x = torch.randn(5, 2, 3, 3)
    models = []
    for last in (False, True):
        server = conv(last)
        change = torch.zeros(server.layout.n_params, dtype=torch.float64)
        for block in server.layout.parameters:
            block.make_view(change).copy_(torch.linspace(-1, 1, block.size).view(block.shape))
        models.append(make_server_models(server).model(change, None).eval())
    torch.testing.assert_close(models[0](x), models[1](x), atol=1e-5, rtol=0)


def test_buffers_are_those_of_the_round_or_of_a_client() -> None:
    server = conv()
    round_models = make_server_models(server)
    mean_block = {block.name: block for block in server.layout.buffers}["1.running_mean"]
    assert not_none(norm_of(round_models.model(update(server), None)).running_mean).tolist() == [1, 1, 1]
    client_buffers = torch.full((server.layout.n_buffers,), 7.0, dtype=torch.float64)
    client_norm = norm_of(round_models.model(update(server), client_buffers))
    assert not_none(client_norm.running_mean).tolist() == client_norm.bias.tolist() == [7, 7, 7]
    assert mean_block.make_view(server.buffers).tolist() == [0, 0, 0]


def test_created_networks_share_no_memory() -> None:
    server = conv()
    round_models = make_server_models(server)
    before, buffers = server.w.clone(), server.buffers.clone()
    first, second = (round_models.model(update(server), None) for _ in range(2))
    first.train()(torch.randn(4, 2, 3, 3)).sum().backward()
    with torch.no_grad():
        for tensor in first.state_dict().values():
            tensor.add_(1)
    assert torch.equal(server.w, before)
    assert torch.equal(server.buffers, buffers)
    assert not server.g.any()
    torch.testing.assert_close(round_models.update_of(second), update(server), atol=1e-6, rtol=0)


def test_accuracy_is_of_eval_mode_on_the_validation_set() -> None:
    server = conv()
    round_models = make_server_models(server)
    network = round_models.model(update(server), None).eval()
    rows = round_models.federation.server_val
    expected = float((network(rows.x).argmax(1) == rows.y).float().mean())
    assert round_models.accuracy(network.train()) == expected


def test_forward_passes_are_counted() -> None:
    """Of n samples, a pass forward is n, and one back 2 n more: a training step is 3 n."""
    round_models = make_server_models(conv())
    network = round_models.model(update(round_models.server), None).eval()
    assert round_models.passes == 0
    with torch.no_grad():
        network(round_models.proxy)
    assert round_models.passes == 4
    network(round_models.proxy[:3]).sum().backward()
    assert round_models.passes == 4 + 3 * 3
    network(round_models.proxy)  # forward alone, though a gradient could come back
    assert round_models.passes == 13 + 4
    copied = copy.deepcopy(network)
    copied(round_models.proxy[:1]).sum().backward()
    assert round_models.passes == 17 + 3
    round_models.accuracy(copied)
    assert round_models.passes == 20 + 6
    round_models.server.network.eval()(round_models.proxy)  # an evaluation of the global model is not charged
    assert round_models.passes == 26


def test_draws_depend_on_seed_purpose_and_round() -> None:
    round_models = make_server_models(conv())
    assert round_models.rng("distil").random() == new_generator(5, "distil", 3).random()
