"""Of V_k, and of V_k alone."""

import pytest
import torch

from config_options import make_component
from engine_harness import make_federation
from fedcohort.errors import OptionError


def test_all_validation_samples_are_used() -> None:
    federation = make_federation()
    assert torch.equal(make_component("proxy", "client_heldout").inputs(federation, 0), federation.val.x)


def test_a_subset_is_drawn_by_the_seed_and_keeps_its_order() -> None:
    federation = make_federation(n=300)
    proxy = make_component("proxy", "client_heldout", n=9)
    x = proxy.inputs(federation, 3)
    positions = [int((federation.val.x == row).all(1).nonzero()) for row in x]
    assert positions == sorted(set(positions))
    assert len(positions) == 9
    assert torch.equal(x, proxy.inputs(federation, 3))
    assert not torch.equal(x, proxy.inputs(federation, 4))


def test_too_many_samples_are_rejected() -> None:
    federation = make_federation()
    n_samples = len(federation.val.x)
    with pytest.raises(OptionError, match=rf"^proxy\.n must be at most {n_samples}, the number of validation samples"):
        make_component("proxy", "client_heldout", n=n_samples + 1).inputs(federation, 0)
