"""The moments of the server's validation inputs, feature by feature."""

from dataclasses import replace

import torch

from config_options import make_component
from engine_harness import make_federation
from fedcohort.data.federation import ServerSamples


def test_the_moments_are_those_of_the_validation_inputs() -> None:
    # Features of means 0 and 100, deviations 0 and 2 (population form); with n = 40,000 a mean is within 4 * 2 / 200.
    x = torch.tensor([[0.0, 98.0], [0.0, 102.0]])
    federation = replace(make_federation(), server_val=ServerSamples(x, torch.tensor([0, 1])))
    z = make_component("proxy", "noise", n=40_000).inputs(federation, 0)
    assert z.shape == (40_000, 2)
    assert z.dtype == torch.float32
    assert (z[:, 0] == 0).all()
    assert abs(float(z[:, 1].mean()) - 100) < 0.04
    assert abs(float(z[:, 1].std()) - 2) < 0.04


def test_the_inputs_depend_only_on_the_seed() -> None:
    federation, proxy = make_federation(), make_component("proxy", "noise", n=5)
    before = torch.get_rng_state()
    assert torch.equal(proxy.inputs(federation, 1), proxy.inputs(federation, 1))
    assert not torch.equal(proxy.inputs(federation, 1), proxy.inputs(federation, 2))
    assert torch.equal(before, torch.get_rng_state())
