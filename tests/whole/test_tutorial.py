"""The selector of docs/tutorial_selector.md works as its text says, and its own test passes."""

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from fedcohort.types import Population, RoundOutcome
from selector_harness import context, outcome
from yaml_words import ROOT

TEXT = (ROOT / "docs" / "tutorial_selector.md").read_text()
MODULE, TEST = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
(OPTIONS,) = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return what builds the tutorial's selector, as `yaml_words.make` would once its three files are written."""
    options = yaml.safe_load(OPTIONS)
    path, _, name = options.pop("_target_").rpartition(".")
    module = ModuleType(path)
    monkeypatch.setitem(sys.modules, path, module)  # dataclasses look their module up
    exec(compile(MODULE, path, "exec"), module.__dict__)
    return lambda group, choice, **changes: getattr(module, name)(**{**options, **changes})


def test_the_test_of_the_tutorial_passes(make: Callable[..., Any]) -> None:
    names: dict[str, Any] = {}
    exec(TEST, names)
    names["make"] = make
    names["test_scores_are_the_equation"]()


def test_every_client_trains_before_one_trains_again(make: Callable[..., Any]) -> None:
    """Six clients in cohorts of two: three rounds reach all of them, whatever their losses."""
    selector = make("selector", "stale_loss")
    state = selector.init(Population(6, 2, 2, {}))
    trained: list[int] = []
    for number in (1, 2, 3):
        selection, state = selector.select(state, context(number, 2, 6), {})
        trained += selection.clients.tolist()
        arrived: RoundOutcome = outcome(number, selection.clients.tolist(), train_loss=[9.0, np.nan])
        state = selector.observe(state, arrived)
    assert sorted(trained) == list(range(6))
