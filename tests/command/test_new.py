"""The files that `fedcohort new` writes and those of the tutorial run without changes, and their tests pass."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config_options import ROOT
from fedcohort.command.new import GROUP_BY_KIND, main, make_component_files
from fedcohort.errors import OptionError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package, the choices and the tests, in a temporary folder, with their compiled modules."""
    ignored = shutil.ignore_patterns("*.pyc.*")
    for top in ("src", "configs", "tests"):
        shutil.copytree(ROOT / top, tmp_path / top, ignore=ignored)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_tests(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pytest on the checkout that this process is in, with `arguments`."""
    program = "import sys; sys.path.insert(0, 'src'); import pytest; raise SystemExit(pytest.main(sys.argv[1:]))"
    options = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-o", "pythonpath=tests", "--rootdir=."]
    return subprocess.run([sys.executable, "-c", program, *options, *arguments], capture_output=True, text=True)


FAULTS = {  # one in each kind's formula, which its own test notices, so that a reader sees how
    "selector": ("draw(scores", "draw(n"),  # its option has no effect
    "aggregator": ("len(rows) - drop", "len(rows)"),
    "dataset": ("+ 2.0 *", "- 2.0 *"),
    "signal": ("batch_loss[-1]", "batch_loss[1]"),
    "model": ("nn.Tanh()", "nn.ReLU()"),
}


def write_tutorial_files() -> None:
    """Write the module, the yaml file and the test of docs/tutorial_selector.md into the current checkout."""
    text = (ROOT / "docs" / "tutorial_selector.md").read_text()
    blocks = re.findall(r"^```(?:python|yaml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    places = ("src/fedcohort/selector/{}.py", "configs/selector/{}.yaml", "tests/selector/test_{}.py")
    for place, block in zip(places, blocks, strict=True):
        Path(place.format("stale_loss")).write_text(block)


@pytest.mark.usefixtures("checkout")
def test_new_files_and_the_tutorials_pass_their_tests_and_the_laws_and_the_tests_notice_a_fault() -> None:
    assert FAULTS.keys() == GROUP_BY_KIND.keys()
    write_tutorial_files()
    tests = ["tests/selector/test_stale_loss.py"]
    for kind, group in GROUP_BY_KIND.items():
        for name in ("my_own", "faulty"):
            assert main([kind, name]) == 0
            tests.append(f"tests/{group}/test_{name}.py")
        correct, faulty = FAULTS[kind]
        path = Path("src", "fedcohort", group, "faulty.py")
        assert path.read_text().count(correct) == 1
        path.write_text(path.read_text().replace(correct, faulty))
    laws = [f"tests/laws/test_{part}_laws.py" for part in ("agg", "dataset_columns", "model", "query", "selector")]
    laws += ["tests/laws/test_selector_forms.py", "tests/laws/test_selector_failure_laws.py"]
    process = run_tests(*tests, *laws, "-k", "my_own or test_faulty or stale_loss")
    failed_tests = {
        line.split()[1].split("::")[0] for line in process.stdout.splitlines() if line.startswith("FAILED ")
    }
    assert failed_tests == {test for test in tests if "faulty" in test}, process.stdout[-3000:] + process.stderr[-2000:]
    assert process.returncode == pytest.ExitCode.TESTS_FAILED


@pytest.mark.usefixtures("checkout")
def test_existing_files_are_not_overwritten() -> None:
    main(["selector", "mine"])
    with pytest.raises(OptionError, match="exists already"):
        main(["selector", "mine"])


@pytest.mark.usefixtures("checkout")
def test_the_names_of_groups_and_plurals_are_kinds_and_laws_are_named_where_they_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for typed_kind, name in (("agg", "one"), ("aggregators", "two"), ("signals", "three")):
        assert main([typed_kind, name]) == 0
    test_lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("test it: ")]
    assert test_lines == [
        'test it: make test T="tests/agg tests/laws -k one"',
        'test it: make test T="tests/agg tests/laws -k two"',
        'test it: make test T="tests/signal -k three"',
    ]


def test_the_command_must_run_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="there is no folder src/fedcohort/selector"):
        main(["selector", "mine"])


@pytest.mark.parametrize("name", ["My", "a-b", "class", "1st", "none", "true", "null", "ünï", "../x", ""])
def test_names_that_are_no_module_names_are_rejected(name: str) -> None:
    """The class of none would be None, and Hydra reads selector=null as no selector."""
    with pytest.raises(OptionError, match="its name must be a lower-case Python name such as my_method, which is no"):
        make_component_files("selector", name)


def test_unknown_kinds_are_rejected() -> None:
    with pytest.raises(
        OptionError, match="what is new must be one of selector, aggregator, signal, dataset, model, got 'x'"
    ):
        make_component_files("x", "mine")
    with pytest.raises(OptionError, match="type fedcohort new KIND NAME"):
        main(["selector"])
