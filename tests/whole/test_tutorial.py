"""The selector of docs/tutorial_selector.md works as described."""

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from config_options import ROOT
from fedcohort.types import Population, RoundOutcome
from selector_harness import make_context, make_outcome

TEXT = (ROOT / "docs" / "tutorial_selector.md").read_text()
MODULE, _ = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
(OPTIONS,) = re.findall(r"^```yaml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def make_component(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a stand-in for `config_options.make_component` that builds the selector of the tutorial."""
    options = yaml.safe_load(OPTIONS)
    path, _, name = options.pop("_target_").rpartition(".")
    module = ModuleType(path)
    monkeypatch.setitem(sys.modules, path, module)  # dataclasses look their module up
    exec(compile(MODULE, path, "exec"), module.__dict__)
    return lambda group, choice, **changes: getattr(module, name)(**{**options, **changes})


def test_every_client_trains_before_one_trains_again(make_component: Callable[..., Any]) -> None:
    """Six clients in cohorts of two: three rounds reach all of them, whatever their losses."""
    selector = make_component("selector", "stale_loss")
    state = selector.init(Population(6, 2, 2, {}))
    trained: list[int] = []
    for number in (1, 2, 3):
        selection, state = selector.select(state, make_context(number, 2, 6), {})
        trained += selection.clients.tolist()
        arrived: RoundOutcome = make_outcome(number, selection.clients.tolist(), train_loss=[9.0, np.nan])
        _, state = selector.observe(state, arrived)
    assert sorted(trained) == list(range(6))
