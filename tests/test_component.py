"""Former names of what a component declares raise an error that gives the new name."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from case_loop import for_all
from fedcohort import types
from fedcohort.component import NEW_NAMES_OF_DECLARATIONS, Facts, Requirement
from fedcohort.errors import ComponentError
from fedcohort.round.guard import add_result_checks
from fedcohort.selector.base import Selector
from fedcohort.selector.random import Random
from fedcohort.signal.base import find_signal
from fedcohort.types import Selection


def test_importing_from_the_former_module_names_the_new_one() -> None:
    importlib.import_module("fedcohort.part")
    with pytest.raises(ImportError, match=r"is called fedcohort\.component now\. Want is called Requirement"):
        from fedcohort.part import Want  # noqa: F401, PLC0415


@for_all("old, new", NEW_NAMES_OF_DECLARATIONS.items())
def test_a_former_declaration_names_the_new_one(old: str, new: str) -> None:
    Former = type("Former", (Random,), {old: frozenset()})
    with pytest.raises(ComponentError, match=f"selector=former .*Former.: {old} is called {new} now: rename it in"):
        add_result_checks(Former("uniform"), "selector", "selector=former", Selector)


@pytest.mark.parametrize(("old", "new"), [("{who}", "{option}"), ("{everybody}", "{full_participation}")])
def test_a_former_placeholder_names_the_new_one(old: str, new: str) -> None:
    with pytest.raises(ComponentError, match=f"holds {old}, which is called {new} now"):
        Requirement(lambda run: True, f"{old} needs more")


def test_a_signal_with_the_former_argument_names_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from fedcohort.signal.base import Static\nsignal = Static('speed', 4, 'expected_s', wants=None)\n"
    (tmp_path / "former_package").mkdir()
    (tmp_path / "former_package" / "speed.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ComponentError, match="wants is called requirement now"):
        find_signal("former_package.speed")


def test_a_former_attribute_of_a_record_names_the_new_one() -> None:
    with pytest.raises(ComponentError, match=r"Selection\.parts is called score_terms now"):
        Selection(np.arange(2)).parts  # noqa: B018
    with pytest.raises(ComponentError, match=r"Facts\.parts is called components now"):
        Facts(None, {}).parts  # noqa: B018


def test_an_old_class_names_the_new_one() -> None:
    with pytest.raises(ComponentError, match=r"types\.Advice is called AggregationOverride now"):
        _ = types.Advice
    with pytest.raises(AttributeError, match="Nothing"):
        _ = types.Nothing


def test_an_old_function_of_selectors_names_the_new_one() -> None:
    from fedcohort.selector import base  # noqa: PLC0415

    with pytest.raises(ComponentError, match=r"selector\.base\.answers is called find_answers now"):
        _ = base.answers
    with pytest.raises(AttributeError, match="nothing"):
        _ = base.nothing
    assert all(hasattr(base, new) for new in base.NEW_NAMES_OF_FUNCTIONS.values())
