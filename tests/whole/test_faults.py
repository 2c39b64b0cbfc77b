"""The faults that `make mutants` plants: what they are, and that the tests of a file see them."""

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="an extra: pip install -e .[mutants]")

import faults
import mutants
from yaml_words import ROOT

CODE = '''"""A docstring of 1 + 1."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


def f(x: "int | None", y: list) -> int:
    y[0] = x
    y.sort()
    print(**{"end": ""})
    return max(y) if x is not None else len(y) - 2
'''


def test_one_mutant_is_planted_at_each_place_with_an_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.py").write_text(CODE)
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    found = faults.mutants([tmp_path / "f.py"], 0, 0)
    assert all(compile(mutant.code, "f", "exec") for mutant in found)
    planted = {(mutant.before, mutant.after.replace("  ", " ")) for mutant in found}
    whole = "return max(y) if x is not None else len(y) - 2"
    places = {("y[0] = x", "pass"), ("y.sort()", "pass"), (whole, whole.replace("max", "min"))}
    assert places <= planted
    assert (whole, whole.replace("is not", "is")) in planted
    assert (whole, whole.replace("-", "+")) in planted
    assert len([before for before, _ in planted if before == whole]) == 4  # a comparison turned round is one fault
    assert not any("None" in before and before != whole for before, _ in planted)
    assert found == faults.mutants([tmp_path / "f.py"], 0, 0)
    some = faults.mutants([tmp_path / "f.py"], 3, 1)
    assert some == faults.mutants([tmp_path / "f.py"], 3, 1)
    assert len({mutant.code for mutant in some}) == 3


def test_a_file_is_tested_by_its_tests_then_laws_then_those_of_its_users() -> None:
    own, word = mutants.stages("fedcohort.selector.powd")
    assert own == [str(ROOT / "tests/selector/test_powd.py")]
    assert [test.split("/")[-1] for test in word] == ["test_selector_laws.py::powd", "test_configs.py::selector-powd"]
    beside, users = mutants.stages("fedcohort.selector.candidates")
    assert own[0] in beside
    assert set(word) <= set(users)


def test_every_equivalent_mutant_has_a_reason_and_exists() -> None:
    for (file, before, _), why in mutants.read_known().items():
        assert len(why) > 20
        lines = " ".join(line.strip() for line in (ROOT / file).read_text().splitlines())
        assert before in lines, f"{file} has changed: {before!r} is there no more"
