"""The faults that `make mutants` plants, and that the tests of a file detect them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("cosmic_ray", reason="an extra: pip install -e .[mutants]")

import mutants
import source_faults
from case_loop import for_all
from config_options import ROOT

CALLS: list[tuple[str, int]] = []
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
    monkeypatch.setattr(source_faults, "ROOT", tmp_path)
    all_mutants = source_faults.draw_mutants([tmp_path / "f.py"], 0, 0)
    assert all(compile(mutant.code, "f", "exec") for mutant in all_mutants)
    planted_pairs = {(mutant.before, mutant.after.replace("  ", " ")) for mutant in all_mutants}
    original = "return max(y) if x is not None else len(y) - 2"
    places = {("y[0] = x", "pass"), ("y.sort()", "pass"), (original, original.replace("max", "min"))}
    assert places <= planted_pairs
    assert (original, original.replace("is not", "is")) in planted_pairs
    assert (original, original.replace("-", "+")) in planted_pairs
    assert (
        len([before for before, _ in planted_pairs if before == original]) == 4
    )  # an inverted comparison is one fault
    assert not any("None" in before and before != original for before, _ in planted_pairs)
    assert all_mutants == source_faults.draw_mutants([tmp_path / "f.py"], 0, 0)
    sampled = source_faults.draw_mutants([tmp_path / "f.py"], 3, 1)
    assert sampled == source_faults.draw_mutants([tmp_path / "f.py"], 3, 1)
    assert len({mutant.code for mutant in sampled}) == 3


def test_stages_are_a_files_tests_then_laws_then_tests_of_importing_modules() -> None:
    own_tests, laws_of_option = mutants.list_stages("fedcohort.selector.powd")
    assert own_tests == [str(ROOT / "tests/selector/test_powd.py")]
    assert [test.split("/")[-1] for test in laws_of_option] == [
        "test_selector_laws.py::powd",
        "test_configs.py::selector-powd",
    ]
    importing_tests, users = mutants.list_stages("fedcohort.selector.candidates")
    assert own_tests[0] in importing_tests
    assert set(laws_of_option) <= set(users)


@for_all("step", [1, 2])
@for_all("option", ["'agg-krum'", "agg median", "agg, krum"])
def run_over_options(option: str, step: int) -> None:
    CALLS.append((option, step))


def test_only_the_cases_of_the_chosen_option_are_run() -> None:
    path = Path("test_configs.py")
    second = SimpleNamespace(path=path, name="test_other", function=lambda: None)
    items = [SimpleNamespace(path=path, name="run_over_options", function=run_over_options), second]
    mutants.ChosenOptions([f"{path}::agg-krum"]).pytest_collection_modifyitems(items)
    assert [item.name for item in items] == ["run_over_options"]
    run_over_options()
    assert CALLS == [("'agg-krum'", 1), ("agg, krum", 1), ("'agg-krum'", 2), ("agg, krum", 2)]


def test_every_equivalent_mutant_has_a_reason_and_exists() -> None:
    for (file, before, _), reason in mutants.read_equivalent().items():
        assert len(reason) > 20
        lines = " ".join(line.strip() for line in (ROOT / file).read_text().splitlines())
        assert before in lines, f"{file} has changed: {before!r} is there no more"
