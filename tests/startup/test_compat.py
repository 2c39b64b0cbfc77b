"""Hydra's private class is there, and its errors are worded as we read them: else these name the version."""

import re
import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException

from fedcohort.errors import ForeignChange
from fedcohort.startup import compat
from yaml_words import CONFIGS

HYDRA = f"hydra-core {version('hydra-core')} words it otherwise than {compat.HYDRA}"


def said(*words: str) -> Exception:
    """Hydra's error for `words`."""
    with pytest.raises(Exception) as caught, initialize_config_dir(str(CONFIGS), version_base="1.3"):
        compose("train", overrides=list(words))
    return caught.value


@pytest.mark.parametrize(
    ("word", "pattern", "named"),
    [
        ("selector=random,flash", compat.AMBIGUOUS, "selector=random,flash"),
        ("seed=range(3)", compat.NEEDS_MULTIRUN, "seed=range(3)"),
        ("+seed=1", compat.THERE_ALREADY, "seed"),
        ("+deadline=fixed", compat.CHOSEN_ALREADY, "deadline"),
        ("objective@objective.base=ce", compat.NO_SUCH_PART, "objective@objective.base"),
        ("~selector.foo", compat.NOTHING_TO_DELETE, "selector.foo"),
        ("~server=momentum", compat.NOT_CHOSEN, "server"),
    ],
)
def test_errors_are_worded_as_they_are_read(word: str, pattern: str, named: str) -> None:
    error = said(word)
    found = re.match(pattern, str(error).partition("\n")[0])
    assert isinstance(error, HydraException), f"{HYDRA}: {error!r}"
    assert found, f"{HYDRA}: {error}"
    assert named in found[1] or found[1] in named


def test_a_word_without_a_file_is_named() -> None:
    error = said("selector=best")
    assert isinstance(error, MissingConfigException)
    assert compat.missing_config(str(error)) == ("train", "selector", "best"), f"{HYDRA}: {error}"
    assert "Config search path" not in compat.without_search_path(str(error))


def test_a_group_that_was_given_a_number_is_known() -> None:
    assert compat.is_no_word(error := said("selector=3")), f"{HYDRA}: {error!r}"


def test_a_lone_flag_is_known() -> None:
    command = [sys.executable, str(CONFIGS.parent / "train.py"), "--resolve"]
    line = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert "flag can only be used" in line, f"{HYDRA}: {line}"
    assert compat.is_lone_flag(ValueError(line))


def test_the_jobs_of_a_sweep_are_listed() -> None:
    parsed = OverridesParser.create().parse_overrides(["selector=random,flash", "seed=0,1"])
    assert len(compat.combinations(parsed)) == 4


def test_a_part_that_is_gone_is_named_with_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "hydra._internal.core_plugins.basic_sweeper"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    with pytest.raises(ForeignChange, match=rf"hydra-core {version('hydra-core')} is installed, and BasicSweeper\."):
        compat.combinations([])
