"""FLOPs of a forward pass, by hand."""

import pytest
from torch import nn

from cost_toy import held
from fedcohort.training.flops import forward_flops
from known import known


@pytest.mark.parametrize("training", [True, False])
def test_a_forward_pass_multiplies_and_adds(training: bool) -> None:
    """5 inputs to 4, to 3: 2 (5 * 4 + 4 * 3) FLOPs of one sample. The network is left as it was."""
    norm = nn.BatchNorm1d(4)
    network = nn.Sequential(nn.Linear(5, 4), norm, nn.Linear(4, 3)).train(training)
    assert forward_flops(network, held()) == 2 * (5 * 4 + 4 * 3)
    assert network.training == training
    assert int(known(norm.num_batches_tracked)) == 0
