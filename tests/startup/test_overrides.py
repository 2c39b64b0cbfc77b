"""Keyword arguments become the options that are typed, and Hydra reads the same values from them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from case_loop import for_all
from config_options import CONFIGS
from fedcohort.errors import OptionError
from fedcohort.startup.compose import compose_with_hydra
from fedcohort.startup.overrides import list_overrides


class Net(nn.Module):
    """A network at the top of a module."""


@for_all(
    "options, overrides",
    [
        ({"selector": "flash", "rounds": 20}, ["selector=flash", "rounds=20"]),
        ({"client": {"lr": 0.05, "momentum": None}}, ["client.lr=0.05", "client.momentum=null"]),
        ({"model.args": {"width": 16}}, ["model.args={width:16}"]),
        ({"model": {"path": "a.Net", "args": {"width": 16}}}, ["model.path=a.Net", "model.args={width:16}"]),
        (
            {"dataset.leave_out": ["id", "my age"], "dataset.label": "7"},
            ["dataset.leave_out=[id,'my age']", "dataset.label='7'"],
        ),
        ({"resume": True, "cohort": np.int64(3)}, ["resume=true", "cohort=3"]),
        ({"client": {"lr": np.float64(0.1)}}, ["client.lr=0.1"]),
        ({"model": Net}, ["model=module", f"model.path={Net.__module__}.Net"]),
    ],
)
def test_options_have_the_command_lines_syntax(options: dict[str, Any], overrides: list[str]) -> None:
    assert list_overrides(options) == overrides


FIRST_TEXTS = ("a b", "null", "True", "", "it's", "a,b", "a=b", "{x}")
MORE_TEXTS = ("back\\", "1e3", "~/data", "-1", "größe", "ärzte", "a(b)[c]")


def test_strings_stay_strings() -> None:
    texts = (*FIRST_TEXTS, *MORE_TEXTS)
    overrides = [
        f"+text{n}={list_overrides({'dataset.path': text})[0].partition('=')[2]}" for n, text in enumerate(texts)
    ]
    config = compose_with_hydra(overrides, CONFIGS)
    assert [config[f"text{n}"] for n in range(len(texts))] == list(texts)
    (override,) = list_overrides({"dataset.path": "a b"})
    assert compose_with_hydra(["dataset=folder", override], CONFIGS)["dataset"]["path"] == "a b"


def test_values_of_a_sweep_are_formatted() -> None:
    options = {"selector": ["random", "flash"], "agg": "fedavg,scaffold", "seed": range(3), "rounds": 5}
    sweep_overrides = ["selector=random,flash", "agg=fedavg,scaffold", "seed=0,1,2", "rounds=5"]
    assert list_overrides(options, is_sweep=True) == sweep_overrides
    with pytest.raises(OptionError, match=r"seed=\[0, 1\]: several values are a sweep, call fedcohort\.sweep"):
        list_overrides({"seed": [0, 1]})
    with pytest.raises(OptionError, match="seed has no values"):
        list_overrides({"seed": []}, is_sweep=True)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Net(), "got a network of the class Net. Each run has to make a new network .*: pass model=Net$"),
        (nn.Linear(2, 2), "got a network of the class Linear. .*: write a function at the top that returns it, and"),
        (lambda: Net(), "function at the top of a module, got <lambda>. .*: write a function at the top"),
    ],
)
def test_a_network_object_is_rejected_as_an_option(model: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        list_overrides({"model": model})


def test_values_without_a_command_line_form_are_named() -> None:
    with pytest.raises(OptionError, match=r"dataset must be a number, a text, .* got object"):
        list_overrides({"dataset": object()})
    assert list_overrides({"paths.logs": Path("a/b")}) == ["paths.logs=a/b"]
