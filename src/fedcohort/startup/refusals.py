"""What was typed wrong before a config is composed, in one line: Hydra's own errors are several, or a traceback.

A user who wants the traceback sets HYDRA_FULL_ERROR=1, as with Hydra itself.
"""

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fedcohort.errors import FedcohortError, OptionError
from fedcohort.host import secrets
from fedcohort.ranges import refuse
from fedcohort.startup import compat, hydra_options
from fedcohort.startup.options import CHECKS, unknown

FULL = "HYDRA_FULL_ERROR"
_BEFORE: list[str | None] = []  # its value before each call of `in_one_line` that is under way
SWEEP = "{0}: several values are a sweep, put -m first (python train.py -m ...); a list is typed as [a,b]"
EXTRA = "sweep"  # ours, which installs the plugins
PLUGINS = {  # launchers and sweepers that are plugins, and a package that each brings along
    "hydra/launcher=joblib": "hydra_plugins.hydra_joblib_launcher",
    "hydra/launcher=slurm": "submitit",
    "hydra/launcher=submitit_slurm": "submitit",
    "hydra/sweeper=optuna": "hydra_plugins.hydra_optuna_sweeper",
}
LOST = ("UncompletedJobError", "FailedJobError", "TerminatedWorkerError")  # submitit's and joblib's
SAYINGS = (  # Hydra's first line, and what it comes to here
    (compat.AMBIGUOUS, SWEEP),
    (compat.NEEDS_MULTIRUN, SWEEP),
    (compat.THERE_ALREADY, "{0} is there already: leave out the +"),
    (compat.CHOSEN_ALREADY, "{0} is chosen already: leave out the +"),
    (compat.NO_SUCH_PART, "{0}: no chosen word has this part; objective=propfair and proxy=dataset do"),
    (
        compat.NO_SUCH_PART_IN_DATASET,
        "dataset={0} chooses clients too: it can't be part of another word (proxy=folder reads a folder)",
    ),
    (compat.NOTHING_TO_DELETE, "~{0} deletes what is not there"),
    (compat.NOT_CHOSEN, "~{0} deletes what was not chosen"),
)


def in_one_line(main: Callable[[], object], words: Sequence[str], configs: Path) -> int:
    """Call `main`, Hydra's. Returns 0, or 2 where the user's mistake has been printed.

    Args:
        main: what may raise.
        words: what was typed.
        configs: the folder of the groups.
    """
    wanted = os.environ.get(FULL)
    _BEFORE.append(wanted)
    os.environ[FULL] = "1"  # Hydra raises what it would print and end with
    try:
        sweep = bool({"-m", "--multirun"} & set(words))
        secrets.check(words, list(configs.rglob("*.yaml")) if sweep else ())  # Hydra writes a sweep's config down
        check_words(words, configs)
        check_sweep(words)
        main()
    except Exception as error:
        line = None if wanted == "1" else explain(error, words, configs)
        if line is None:
            raise
        sys.stderr.write(f"{line}\n")
        return 2
    finally:
        _BEFORE.pop()
        os.environ.pop(FULL)
        os.environ.update({} if wanted is None else {FULL: wanted})
    return 0


def environment() -> dict[str, str]:
    """Return the environment as the user has it, for a process of its own: without what `in_one_line` sets in it."""
    found = dict(os.environ)
    if _BEFORE and _BEFORE[0] is None:
        found.pop(FULL, None)
    return found


def check_words(words: Sequence[str], configs: Path) -> None:
    """What Hydra takes for a path, or falls over. Raises `OptionError`.

    A word of a group is a file's name in its folder: `selector=../agg/fedavg` would be an aggregator for a selector.
    """
    hydra_options.check(words)
    for typed in words:
        name, is_option, value = typed.lstrip("+~").partition("=")
        if typed.startswith("-") or not is_option:
            continue
        if not name:
            raise OptionError(f"can't read {typed!r}: type name=value")
        group = name.partition("@")[0]
        if group and (configs / group).is_dir():
            for chosen in re.split(r"[,\[\]()\s'\"]+", value):
                if chosen.startswith("/") or chosen.endswith(".yaml") or {".", ".."} & set(chosen.split("/")):
                    raise OptionError(_one_of(name, _words(configs, group), chosen))


def check_sweep(words: Sequence[str]) -> None:
    """What a sweep needs, before Hydra makes its folder. Raises `OptionError`."""
    for typed in words:
        if typed in PLUGINS and not _is_installed(PLUGINS[typed]):
            install = f'pip install --constraint constraints.txt --editable ".[{EXTRA}]"'
            raise OptionError(f"{typed} needs a plugin: {install}")
    if not {"-m", "--multirun"} & set(words):
        return
    for typed in words:
        name, _, value = typed.partition("=")
        if typed == "hydra/launcher=submitit_local":
            raise OptionError(
                f"{typed}: its jobs outlive a sweep that is killed; hydra/launcher=local ends them with it"
            )
        if (
            name == "hydra/launcher"
            and value.endswith("slurm")
            and not (shutil.which("sbatch") and shutil.which("srun"))
        ):
            raise OptionError(f"{typed} needs SLURM's sbatch and srun on the PATH: start it where jobs are submitted")
        if name == "hydra.launcher.n_jobs" and value != "-1" and not re.fullmatch("[1-9][0-9]*", value):
            raise refuse(name, "an integer in [1, inf), or -1 for as many as there are cores", value)
        if name == "paths.logs":
            CHECKS[name](name, value)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is a part of
        return False


def explain(error: BaseException, words: Sequence[str], configs: Path) -> str | None:
    """The line for an error that a user made; None for any other."""
    if isinstance(error, FedcohortError):
        return str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"there is not enough memory ({_join(error)[:200] or 'no reason given'}): {FULL}=1 shows where"
    if isinstance(error, OverrideParseException):
        return f"can't read {error.override!r}: type name=value, lists as [1,2], texts with spaces as \"name='a b'\""
    if isinstance(error, MissingConfigException):
        return _missing(error, words, configs)
    if isinstance(error, HydraException):
        return _composition(error, configs)
    if isinstance(error, OmegaConfBaseException) or type(error).__module__.startswith("yaml."):
        return _join(error)
    if compat.is_no_word(error):
        return _no_word(words, configs)
    if type(error).__name__ in LOST:
        lines = [line for line in str(error).splitlines() if line.strip("- ")]
        return f"a job was lost: {' '.join(lines[:2])}"  # the rest is the job's log
    if compat.is_lone_flag(error):
        return _join(error)
    if type(error).__module__.startswith("submitit"):
        return f"SLURM refused the jobs: {_join(error)}"
    return None


def _join(error: BaseException) -> str:
    return " ".join(compat.without_search_path(str(error)).split())


def _words(configs: Path, group: str) -> list[str]:
    return sorted(path.stem for path in (configs / group).glob("*.yaml")) if group else []


def _one_of(group: str, known: Iterable[str], chosen: str) -> str:
    return str(refuse(group, f"one of {', '.join(known)}", chosen))


def _missing(error: MissingConfigException, words: Sequence[str], configs: Path) -> str:
    """Return the line for a word that has no file, whether it was typed or another config names it."""
    where = compat.missing_config(str(error))
    if where is None:
        return _join(error)
    file, group, chosen = where
    inside = [name for name in (word.rpartition("=")[0] for word in words) if name.startswith(f"{group}@")]
    typed = file in ("train", "hydra/config") or bool(inside)
    line = _one_of(inside[0] if inside else group, error.options or _words(configs, group), chosen)
    return line if typed else f"configs/{file}.yaml: {line}"


def _no_word(words: Sequence[str], configs: Path) -> str:
    """Hydra doesn't say which group was given null, or a number."""
    for word in words:
        group, _, chosen = word.lstrip("+").partition("=")
        known = _words(configs, group)
        if known and chosen not in known:
            return _one_of(group, known, chosen)
    return f"can't read {' '.join(words)}: type name=value"


def _composition(error: HydraException, configs: Path) -> str:
    cause = error.__cause__
    if isinstance(cause, OmegaConfBaseException) and "not in " in str(cause) and cause.full_key:
        return _no_option(cause, configs)
    first = str(error).partition("\n")[0]
    for pattern, ours in SAYINGS:
        if match := re.match(pattern, first):
            return ours.format(match[1])
    return ": ".join(filter(None, (_join(error), _join(cause) if cause else "")))


def _no_option(cause: OmegaConfBaseException, configs: Path) -> str:
    """`selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie`."""
    where, _, key = str(cause.full_key).rpartition(".")
    node = cause.parent_node if isinstance(cause.parent_node, DictConfig) else DictConfig({})  # seed.x: a number
    known = [str(name) for name in node if name not in ("_target_", "hydra")]
    if not where:
        return str(unknown("", key, {*known, *(path.name for path in configs.iterdir() if path.is_dir())} - {"hydra"}))
    if not node:
        return f"{where} has no option {key!r}; it is one value, typed whole: {where}=VALUE"
    target = str(node.get("_target_", "")).split(".")
    if target[:2] == ["fedcohort", where] and len(target) > 2:  # a word is its path: fedcohort.selector.ucb_cs.UcbCs
        where = f"{where}={target[2]}"
    return str(unknown(where, key, known))
