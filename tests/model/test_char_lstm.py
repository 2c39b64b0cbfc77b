"""LEAF's network for Shakespeare: its size, its weights, its cost, and the data that it rejects."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from fedcohort.errors import IncompatibleConfig
from fedcohort.model.char_lstm import CharLstm
from run_harness import run_training
from shakespeare_tables import write_roles


def build(hidden: int = 256) -> nn.Module:
    torch.manual_seed(0)
    return CharLstm(8, hidden, 2).build((80,), 80)


def test_the_char_lstm_has_leafs_parameters_and_a_second_bias_per_layer() -> None:
    """80 * 8;  4 * 256 * (8 + 256 + 2);  4 * 256 * (256 + 256 + 2);  257 * 80;  TensorFlow: 2 * 4 * 256 fewer."""
    sizes = {name: p.numel() for name, p in build().named_parameters()}
    assert sum(sizes.values()) == 819_920
    assert sum(sizes.values()) - sum(n for name, n in sizes.items() if "bias_hh" in name) == 817_872


def test_initial_weights_follow_tensorflow() -> None:
    """Uniform within sqrt(6 / (inputs + 256 + 1024)) for both of an LSTM's matrices; forget gates' biases are 1."""
    weights = build().state_dict()
    for layer, inputs in ((0, 8), (1, 256)):
        bound = math.sqrt(6 / (inputs + 256 + 1024))
        for kind in ("ih", "hh"):
            matrix = weights[f"lstm.weight_{kind}_l{layer}"]
            assert float(matrix.abs().max()) == pytest.approx(bound, rel=0.01)
            assert float(matrix.std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)
        bias = weights[f"lstm.bias_ih_l{layer}"]
        assert bias.reshape(4, 256).mean(1).tolist() == [0, 1, 0, 0]
        assert float(bias.std(correction=0)) == pytest.approx(math.sqrt(3) / 4)
        assert not weights[f"lstm.bias_hh_l{layer}"].any()
    assert float(weights["embedding.weight"].abs().max()) == pytest.approx(math.sqrt(6 / 88), rel=0.02)


def test_the_char_lstm_reads_the_whole_sequence_for_any_integer_type() -> None:
    network, x = build(16), torch.randint(0, 80, (3, 80))
    logits = network(x)
    for kind in (torch.uint8, torch.int32):
        assert torch.equal(network(x.to(kind)), logits)
    for place in (0, 79):
        changed = x.clone()
        changed[0, place] = (x[0, place] + 1) % 80
        changed_logits = network(changed)
        assert not torch.equal(changed_logits[0], logits[0])
        assert torch.allclose(changed_logits[1:], logits[1:])


def test_incompatible_options_are_rejected_at_start_up(tmp_path: Path) -> None:
    write_roles(tmp_path, dict.fromkeys(range(4), 6), dict.fromkeys(range(4), 4))
    plays = ("dataset=shakespeare", f"dataset.path={tmp_path}", "dataset.test=given", "clients=null", "cohort=2")
    for overrides, refusal in (
        (("model=char_lstm",), "model=char_lstm reads tokens, and the inputs of dataset=digits are numbers"),
        (
            (*plays, "model=mlp"),
            r"model=mlp reads numbers, and the inputs of dataset=shakespeare are sequences of tok",
        ),
        ((*plays, "model=char_lstm", "feature_noise=gaussian"), "feature_noise needs real numbers, .* uint8"),
        ((*plays, "model=char_lstm", "agg=feddf", "proxy=noise"), "proxy=noise draws real numbers, but the inputs of"),
        ((*plays, "model=char_lstm", "agg=feddf", "proxy=dataset"), r"samples have the shape \[1, 8, 8\]"),
    ):
        with pytest.raises(Exception, match=refusal) as caught:
            run_training(tmp_path / "logs", *overrides, "rounds=1")
        assert type(caught.value).__module__ == "fedcohort.errors"
    with pytest.raises(
        IncompatibleConfig, match=r"model=char_lstm needs sequences \[length\], but the inputs are \[3, 4\]"
    ):
        CharLstm(8, 8, 1).build((3, 4), 80)


def test_the_vectorised_engine_says_that_it_cannot(tmp_path: Path) -> None:
    write_roles(tmp_path, dict.fromkeys(range(4), 6), dict.fromkeys(range(4), 4))
    plays = ("dataset=shakespeare", f"dataset.path={tmp_path}", "dataset.test=given", "clients=null", "cohort=2")
    run = run_training(tmp_path / "logs", *plays, "model=char_lstm", "model.hidden=4", "engine=vectorised", "rounds=1")
    assert run.info.tags["engine"] == ("sequential: the vectorised engine does not support recurrent layers")
