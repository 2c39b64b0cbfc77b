"""One line for an error that a user's mistake causes. Hydra prints several, or a traceback.

The wording of Hydra's errors was read in Hydra 1.3.8.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fedcohort import ranges
from fedcohort.errors import FedcohortError
from fedcohort.startup.options import unknown

LOST = ("UncompletedJobError", "FailedJobError", "TerminatedWorkerError")  # submitit's and joblib's
SWEEP = "{0}: several values are a sweep, put -m first (python train.py -m ...); a list is typed as [a,b]"
MESSAGES = (  # the first line of Hydra's error, and the message
    (r"Ambiguous value for argument '(.*)'$", SWEEP),
    (r"Sweep parameters '(.*)' requires", SWEEP),
    (r"Could not append to config\. An item is already at '(.*)'", "{0} is there already: leave out the +"),
    (r"Multiple values for (\S+)\. ", "{0} is chosen already: leave out the +"),
    (
        r"Could not override '(\S+@\S+)'",
        "{0}: no chosen component has this one inside; objective=propfair and proxy=dataset have one",
    ),
    (
        r"In 'dataset/(\w+)': Could not override",
        "dataset={0} chooses clients too: it can't be part of another component (proxy=folder reads a folder)",
    ),
    (r"Could not delete from config\. '(.*)' does not exist", "~{0} deletes what is not there"),
    (r"Could not delete '(.*)'\. No match", "~{0} deletes what was not chosen"),
)


def explain(error: BaseException, words: Sequence[str], configs: Path) -> str | None:
    """Return the line for an error that a user's mistake causes; None for any other error.

    Args:
        error: what was raised.
        words: what was typed.
        configs: the folder of the groups.
    """
    if isinstance(error, FedcohortError):
        return str(error)
    text = " ".join(str(error).partition("Config search path")[0].split())  # Hydra lists its folders behind
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"there is not enough memory ({text[:200] or 'no reason given'}): HYDRA_FULL_ERROR=1 shows where"
    if isinstance(error, OverrideParseException):
        return f"can't read {error.override!r}: type name=value, lists as [1,2], texts with spaces as \"name='a b'\""
    if isinstance(error, MissingConfigException):
        return _explain_missing(error, text, words, configs)
    if isinstance(error, HydraException):
        return _explain_composition(error, text, configs)
    if isinstance(error, OmegaConfBaseException) or type(error).__module__.startswith("yaml."):
        return text
    if isinstance(error, ValueError) and "Config group override must be" in text:  # null, or a number, for a group
        for group, _, value in (word.lstrip("+").partition("=") for word in words):
            if (known := choices_of(configs, group)) and value not in known:
                return one_of(configs, group, value)
        return f"can't read {' '.join(words)}: type name=value"
    if type(error).__name__ in LOST:
        lines = [line for line in str(error).splitlines() if line.strip("- ")]
        return f"a job was lost: {' '.join(lines[:2])}"  # the log of the job follows
    if isinstance(error, ValueError) and "flag can only be used" in text:  # --resolve without --cfg
        return text
    return f"SLURM rejected the jobs: {text}" if type(error).__module__.startswith("submitit") else None


def choices_of(configs: Path, group: str) -> list[str]:
    """Return the choices of a group: the names of the yamls in its folder."""
    return sorted(path.stem for path in (configs / group).glob("*.yaml")) if group else []


def one_of(configs: Path, name: str, value: str, known: Iterable[str] = ()) -> str:
    """Return the message for a choice that its group doesn't have.

    Args:
        configs: the folder of the groups.
        name: the group, perhaps with the package that it fills (`objective@objective.base`).
        value: what was typed.
        known: the choices, where they aren't those in the group's folder.
    """
    return str(ranges.not_one_of(name, value, list(known) or choices_of(configs, name.partition("@")[0])))


def _explain_missing(error: MissingConfigException, text: str, words: Sequence[str], configs: Path) -> str:
    """Explain a choice without a yaml, which was typed, or which another yaml names."""
    match = re.match(r"In '(.*?)': Could not \w+ '(.*)/(.*?)'", str(error))
    if match is None:
        return text
    file, group, value = match.groups()
    inside = [name for name in (word.rpartition("=")[0] for word in words) if name.startswith(f"{group}@")]
    line = one_of(configs, inside[0] if inside else group, value, error.options or ())
    return line if file in ("train", "hydra/config") or inside else f"configs/{file}.yaml: {line}"


def _explain_composition(error: HydraException, text: str, configs: Path) -> str:
    cause = error.__cause__
    if isinstance(cause, OmegaConfBaseException) and "not in " in str(cause) and cause.full_key:
        return _explain_unknown_option(cause, configs)
    first = str(error).partition("\n")[0]
    for pattern, message in MESSAGES:
        if match := re.match(pattern, first):
            return message.format(match[1])
    reason = " ".join(str(cause).partition("Config search path")[0].split()) if cause else ""
    return ": ".join(filter(None, (text, reason)))


def _explain_unknown_option(cause: OmegaConfBaseException, configs: Path) -> str:
    """Return a line such as `selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie`."""
    where, _, key = str(cause.full_key).rpartition(".")
    node = cause.parent_node if isinstance(cause.parent_node, DictConfig) else DictConfig({})  # seed.x: a number
    known = [str(name) for name in node if name not in ("_target_", "hydra")]
    if not where:
        groups = {path.name for path in configs.iterdir() if path.is_dir()}
        return str(unknown("", key, {*known, *groups} - {"hydra"}))
    if not node:
        return f"{where} has no option {key!r}; it is one value, typed whole: {where}=VALUE"
    target = str(node.get("_target_", "")).split(".")
    if target[:2] == ["fedcohort", where] and len(target) > 2:  # a choice is its path: fedcohort.selector.ucb_cs.UcbCs
        where = f"{where}={target[2]}"
    return str(unknown(where, key, known))
