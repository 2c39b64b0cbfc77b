"""A user's network, without a file in the package: it trains, resumes, and is rejected with the reason."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from config_options import make_component
from fedcohort.errors import FedcohortError
from fedcohort.model.module import Module
from run_harness import run_training
from user_networks import NETWORKS

RUN = ("dataset=digits", "split.limit=240", "model=module", "client.epochs=1", "client.lr=0.05")


def list_overrides(name: str, *overrides: str) -> tuple[str, ...]:
    network = NETWORKS.get(name, {"path": f"user_networks.{name}", "head": None})
    head = [] if network["head"] is None else [f"model.head={network['head']}"]
    return (*RUN, f"model.path={network['path']}", *head, *overrides)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_resumed_run_equals_the_uninterrupted_one(name: str, tmp_path: Path) -> None:
    """Dropout is drawn from the seed in each round; buffers, statistics of batch norm and tied weights are saved."""
    uninterrupted = run_training(tmp_path / "whole", *list_overrides(name, "rounds=2"))
    run_training(tmp_path / "parts", *list_overrides(name, "rounds=1"))
    resumed = run_training(tmp_path / "parts", *list_overrides(name, "rounds=2", "resume=true"))
    assert torch.equal(uninterrupted.weights(), resumed.weights())
    assert [report.metrics for report in uninterrupted.reports[-1:]] == [
        report.metrics for report in resumed.reports[-1:]
    ]
    first, last = uninterrupted.reports[0], uninterrupted.reports[-1]
    assert last.metrics["server_val/loss"] != first.metrics["server_val/loss"], "it has learnt something"


def test_parameters_come_from_the_data_and_from_args() -> None:
    network = make_component("model", "module", args={"width": 3}).build((2, 4), 5)
    assert (network.hidden.in_features, network.hidden.out_features, network.out.out_features) == (8, 3, 5)
    assert make_component("model", "module", args={"in_features": 2}).build((2, 4), 5).hidden.in_features == 2, (
        "args come first"
    )


def test_tied_weights_are_one_parameter() -> None:
    network = make_component("model", "module", path="user_networks.TiedWeights").build((4,), 2)
    assert sum(p.numel() for p in network.parameters()) == 4 * 5 + 5 + 5 + 5 * 2 + 2


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("model.path=null",), "model.path must be the dotted name of a class, as my_networks.Net .*, got None"),
    (("model.path=Net",), "model.path must be the dotted name of a class, .*, got 'Net'"),
    (("model.path=nowhere.Net",), "there is no module 'nowhere' in the working folder .* or on PYTHONPATH"),
    (("model.path=user_networks.Dens",), "user_networks has no class 'Dens'; did you mean Dense?"),
    (("model.path=user_networks.Plain",), "must be a class or function that makes an nn.Module, got 'Plain'"),
    (
        ("model.path=user_networks.EXISTING",),
        "user_networks.EXISTING is a network, but each run must build a new one: name its class",
    ),
    (("model.path=user_networks.Dense", "model.args={widht:3}"), "has no parameter 'widht'; did you mean width?"),
    (
        ("model.path=user_networks.Fails",),
        "user_networks.Fails needs the parameter 'depth': type model.args={depth: ...}",
    ),
    (
        ("model.path=user_networks.Fails", "model.args={depth:4}"),
        r"Fails\(depth=4\) raises ValueError: no network of depth 4 \(.*user_networks.py, line \d+, in __init__\)",
    ),
    (("model.path=user_networks.InPlace",), "must not change its inputs in place"),
    (("model.path=user_networks.Lazy",), "the network must have no lazy layer, got 'out.weight' without a shape"),
    (("model.path=user_networks.Unseeded",), "two networks with the same seed have different weights 'out.bias'"),
    (("model.path=user_networks.NamedHeads",), "must return a tensor of logits, got a dict with auxiliary, logits: "),
    (
        ("model.path=user_networks.NamedHeads", "model.head=loss"),
        r"forward of inputs \[2, 1, 8, 8\] raised KeyError: 'loss'",
    ),
    (("model.path=user_networks.Dense", "model.head=true"), "model.head must be an integer, a text or null, got True"),
    (("model.path=user_networks.Dense", "model.inputs=tokens"), "reads tokens, and the inputs of dataset=digits are"),
]


@pytest.mark.parametrize(("overrides", "message"), REFUSED)
def test_unusable_networks_are_rejected_with_the_reason(
    overrides: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FedcohortError, match=message):
        run_training(tmp_path, *RUN, *overrides)
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_the_working_folder_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After PYTHONPATH; a wrong name lists the Python files that are there."""
    (tmp_path / "networks_of_mine.py").write_text("from torch import nn\n\n\ndef net():\n    return nn.Linear(4, 2)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert isinstance(make_component("model", "module", path="networks_of_mine.net").build((4,), 2), torch.nn.Linear)
    with pytest.raises(FedcohortError, match=re.escape(f"{tmp_path} or on PYTHONPATH; did you mean networks_of_mine?")):
        Module("network_of_mine.net", None, "numbers", "sample", None)


def test_a_failing_import_names_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails_at_import.py").write_text("import torch\n\nraise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    model: Any = make_component("model", "module", path="fails_at_import.Net")
    with pytest.raises(FedcohortError, match=r"raises RuntimeError: no licence \(.*fails_at_import.py, line 3"):
        model.build((4,), 2)


def test_a_module_that_draws_when_it_is_imported_changes_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import torch\n\nprobe = torch.randn(3)\n\n\ndef Net(n_classes):\n    return torch.nn.Linear(4, n_classes)\n"
    (tmp_path / "drawing_network.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    model = make_component("model", "module", path="drawing_network.Net")
    weights = []
    for _ in range(2):  # the first one imports the module
        torch.manual_seed(0)
        weights.append(model.build((4,), 2).weight)
    assert torch.equal(*weights)
