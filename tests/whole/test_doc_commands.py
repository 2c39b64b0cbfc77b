"""Each command of README and docs passes the start-up checks that come before data are read."""

import itertools
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from case_loop import for_all
from config_options import ROOT
from fedcohort.command.line import COMMANDS, to_module_name
from fedcohort.startup.check import check_before_data
from run_harness import compose_overrides

DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "papers").glob("*.md")),
]
COMPOSING = ROOT / "docs" / "composing.md"
USER_METHODS = ("mine", "stale_loss")  # methods that a reader of the documents adds
HYDRA_PREFIXES = ("hydra/", "hydra.")
RUN_COMMANDS = ("data", "demo", "evaluate-policy", "profile", "replay")  # commands that accept options of train.py


def list_commands(path: Path) -> Iterator[list[str]]:
    """Yield the arguments of each command in the document's Bash blocks."""
    for block in re.findall(r"^```bash\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if command := shlex.split(line, comments=True):
                yield command


def list_jobs(arguments: list[str]) -> Iterator[list[str]]:
    """Yield the arguments of each job of a `python train.py` command.

    A search interval is replaced by one end, and several seeds by the first, because no check depends on the seed.
    """
    is_sweep = arguments[:1] == ["-m"]
    overrides = [
        re.sub(r"=interval\((.*),.*", r"=\1", override)
        for override in arguments[is_sweep:]
        if not override.startswith(HYDRA_PREFIXES)
    ]
    choices = [
        [f"{key}={choice}" for choice in value.split(",")] if is_sweep else [f"{key}={value}"]
        for key, value in map(split_override, overrides)
    ]
    choices = [values[:1] if values[0].startswith("seed=") else values for values in choices]
    yield from map(list, itertools.product(*choices))


def split_override(override: str) -> tuple[str, str]:
    key, _, value = override.partition("=")
    return key, value


TRAIN = [
    (f"{path.name}: {' '.join(command)}", command)
    for path in DOCUMENTS
    for command in list_commands(path)
    if "train.py" in command
    and "--help" not in command
    and not any(name in argument for name in USER_METHODS for argument in command)
]


@pytest.mark.parametrize("command", [command for _, command in TRAIN], ids=[name for name, _ in TRAIN])
def test_documented_runs_pass_the_start_up_checks(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = re.search(r"^```python\n(from torch import nn\n.*?)^```", COMPOSING.read_text(), re.MULTILINE | re.DOTALL)
    assert network, "docs/composing.md shows the network that commands name"
    (tmp_path / "my_networks.py").write_text(network[1])
    monkeypatch.syspath_prepend(tmp_path)
    if command[0] == "srun":
        for name, value in (("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "2"), ("SLURM_PROCID", "0")):
            monkeypatch.setenv(name, value)
    for job in list_jobs(command[command.index("train.py") + 1 :]):
        check_before_data(compose_overrides(*job))


VERB = [
    (f"{path.name}: {' '.join(command)}", command)
    for path in DOCUMENTS
    for command in list_commands(path)
    if "fedcohort" in command
]


@for_all("command", [command for _, command in VERB])
def test_documented_options_of_a_command_are_in_its_help(command: list[str]) -> None:
    """Some commands accept options of train.py; all other options are described in the command's help."""
    verb, *options = command[command.index("fedcohort") + 1 :]
    assert verb in COMMANDS
    help_text = import_module(f"fedcohort.command.{to_module_name(verb)}").__doc__ or ""
    unknown = [
        key
        for key, value in map(split_override, options)
        if value and not re.search(rf"\b{re.escape(key)}\b", help_text)
    ]
    if verb in RUN_COMMANDS:
        compose_overrides(
            *(
                f"{key}={value}"
                for key, value in map(split_override, options)
                if key in unknown and value not in USER_METHODS
            )
        )
        unknown = []
    assert not unknown


MAKE = sorted({command[1] for path in DOCUMENTS for command in list_commands(path) if command[0] == "make"})


@pytest.mark.parametrize("target", MAKE)
def test_documented_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
