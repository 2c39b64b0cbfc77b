"""LEAF's network for Reddit: its size, its weights, and that a position depends on earlier positions only."""

import pytest
import torch
from torch import nn

from fedcohort.errors import IncompatibleConfig
from fedcohort.model.word_lstm import WordLstm


def build(embedding: int = 256, hidden: int = 256, symbols: int = 10_000) -> nn.Module:
    torch.manual_seed(0)
    return WordLstm(embedding, hidden, 2).build((10,), symbols)


def test_the_word_lstm_has_leafs_parameters_and_a_second_bias_per_layer() -> None:
    """10,000 * 256;  twice 4 * 256 * (256 + 256 + 2);  257 * 10,000;  TensorFlow: 2 * 4 * 256 fewer."""
    sizes = {name: p.numel() for name, p in build().named_parameters()}
    assert sum(sizes.values()) == 6_182_672
    assert sum(sizes.values()) - sum(n for name, n in sizes.items() if "bias_hh" in name) == 6_180_624


def test_initial_weights_follow_leaf() -> None:
    for name, tensor in build().state_dict().items():
        if name.startswith("lstm.bias"):
            assert not tensor.any()
        else:
            assert float(tensor.abs().max()) == pytest.approx(0.1, rel=0.01)
            assert float(tensor.std()) == pytest.approx(0.1 / 3**0.5, rel=0.02)


def test_a_position_depends_only_on_earlier_positions() -> None:
    network, x = build(6, 5, 20), torch.randint(0, 20, (3, 10))
    logits = network(x)
    assert logits.shape == (3, 10, 20)
    assert torch.equal(network(x.to(torch.int16)), logits)
    changed = x.clone()
    changed[0, 4] = (x[0, 4] + 1) % 20
    has_changed = (network(changed) - logits).abs().sum(2) > 1e-7
    assert has_changed.tolist() == [[False] * 4 + [True] * 6, [False] * 10, [False] * 10]


def test_inputs_that_are_no_sequences_are_rejected() -> None:
    with pytest.raises(
        IncompatibleConfig, match=r"model=word_lstm needs sequences \[length\], but the inputs are \[3, 4"
    ):
        WordLstm(8, 8, 1).build((3, 4), 80)
