"""Explain an error that a user's mistake causes in one line, where Hydra prints several lines or a traceback.

The patterns match the messages of Hydra 1.3.8.
"""

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fedcohort import ranges
from fedcohort.errors import ComponentError, FedcohortError, OptionError
from fedcohort.startup.options import make_unknown_option_error

LOST_JOB_ERRORS = ("UncompletedJobError", "FailedJobError", "TerminatedWorkerError")  # errors of submitit and joblib
SWEEP_MESSAGE = "{0}: several values are a sweep, put -m first (python train.py -m ...); a list is typed as [a,b]"
# what to type for a file or a class of one's own
USER_OPTIONS = {"dataset": "dataset=folder dataset.path={}", "model": "model=module model.path={}"}
MESSAGES = (  # pattern of the first line of Hydra's error, and the message
    (r"Ambiguous value for argument '(.*)'$", SWEEP_MESSAGE),
    (r"Sweep parameters '(.*)' requires", SWEEP_MESSAGE),
    (r"Could not append to config\. An item is already at '(.*)'", "{0} exists already: leave out the +"),
    (r"Multiple values for (\S+)\. ", "{0} is chosen already: leave out the +"),
    (
        r"Could not override '(\S+@\S+)'",
        "{0}: no chosen component contains this one; objective=propfair and proxy=dataset contain one",
    ),
    (
        r"In 'dataset/(\w+)': Could not override",
        "dataset={0} sets the clients too: it can't be part of another component (proxy=folder reads a folder)",
    ),
    (r"Could not delete from config\. '(.*)' does not exist", "~{0} deletes an option that does not exist"),
    (r"Could not delete '(.*)'\. No match", "~{0} deletes a choice that was not made"),
)


def explain_error(error: BaseException, arguments: Sequence[str], configs: Path) -> str | None:
    """Return a message of one line for an error that a user's mistake causes; None for any other error.

    Args:
        error: the exception.
        arguments: the command line.
        configs: folder of the config groups.
    """
    if isinstance(error, FedcohortError):
        return str(error)
    error_text = " ".join(str(error).partition("Config search path")[0].split())  # Hydra lists its folders after it
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"there is not enough memory ({error_text[:200] or 'no reason given'}): HYDRA_FULL_ERROR=1 shows where"
    if isinstance(error, OverrideParseException):
        form_advice = "type name=value, lists as [1,2], texts with spaces or accents as \"name='a b'\""
        return f"can't read {error.override!r}: {form_advice}"
    if isinstance(error, MissingConfigException):
        return _explain_missing(error, error_text, arguments, configs)
    if isinstance(error, HydraException):
        return _explain_composition(error, error_text, configs)
    is_flag = isinstance(error, ValueError) and "flag can only be used" in error_text  # --resolve without --cfg
    if isinstance(error, OmegaConfBaseException) or type(error).__module__.startswith("yaml.") or is_flag:
        return error_text
    if (
        isinstance(error, ValueError) and "Config group override must be" in error_text
    ):  # null, or a number, for a group
        for group, _, value in (argument.lstrip("+").partition("=") for argument in arguments):
            if (choices := list_choices(configs, group)) and value not in choices:
                return make_unknown_choice_message(configs, group, value)
        return f"can't read {' '.join(arguments)}: type name=value"
    if type(error).__name__ in LOST_JOB_ERRORS:
        error_lines = [error_line for error_line in str(error).splitlines() if error_line.strip("- ")]
        return f"a job was lost: {' '.join(error_lines[:2])}"  # the log of the job follows
    return f"SLURM rejected the jobs: {error_text}" if type(error).__module__.startswith("submitit") else None


@contextmanager
def raise_plain_errors(arguments: Sequence[str], configs: Path) -> Iterator[None]:
    """Raise `OptionError` with the message that a command prints, where Hydra or a library has its own error.

    Args:
        arguments: the overrides.
        configs: folder of the config groups.
    """
    try:
        yield
    except FedcohortError as error:
        if not isinstance(error, ComponentError):  # whose cause is an error in the user's own code
            error.__cause__, error.__suppress_context__ = None, True
        raise
    except Exception as error:
        message = explain_error(error, arguments, configs)
        if message is None:
            raise
        raise OptionError(message) from None


def list_choices(configs: Path, group: str) -> list[str]:
    """Return the sorted choices of `group`: the names of the yamls in its folder below `configs`."""
    return sorted(path.stem for path in (configs / group).glob("*.yaml")) if group else []


def make_unknown_choice_message(configs: Path, name: str, value: str, choices: Iterable[str] = ()) -> str:
    """Return the message for a choice that does not exist in its group.

    Args:
        configs: folder of the config groups.
        name: the group, perhaps with the node that it fills (`objective@objective.base`).
        value: the choice that was typed.
        choices: the valid choices of the group; by default the names of the files in its folder.
    """
    group = name.partition("@")[0]
    error = ranges.unknown_choice_error(name, value, list(choices) or list_choices(configs, group))
    if group in USER_OPTIONS and re.search(r"[./]", value):
        return f"{error}. For your own, type {USER_OPTIONS[group].format(value)}"
    other_groups = [f"{path.parent.name}={value}" for path in sorted(configs.glob(f"*/{glob.escape(value)}.yaml"))]
    return f"{error}. There is {' and '.join(other_groups)}" if other_groups else str(error)


def _explain_missing(error: MissingConfigException, error_text: str, arguments: Sequence[str], configs: Path) -> str:
    """Return the message for a choice without a yaml, which was typed or is named in another yaml.

    Args:
        error: Hydra's error.
        error_text: text of the error in one line.
        arguments: the command line.
        configs: folder of the config groups.
    """
    message_match = re.match(r"In '(.*?)': Could not \w+ '((?:hydra/)?[^/']*)/(.*?)'", str(error))
    if message_match is None:
        return error_text
    yaml_name, group, value = message_match.groups()
    nested = [name for name in (argument.rpartition("=")[0] for argument in arguments) if name.startswith(f"{group}@")]
    line = make_unknown_choice_message(configs, nested[0] if nested else group, value, error.options or ())
    return line if yaml_name in ("train", "hydra/config") or nested else f"configs/{yaml_name}.yaml: {line}"


def _explain_composition(error: HydraException, error_text: str, configs: Path) -> str:
    cause = error.__cause__
    if isinstance(cause, OmegaConfBaseException) and "not in " in str(cause) and cause.full_key:
        return _explain_unknown_option(cause, configs)
    first_line = str(error).partition("\n")[0]
    for pattern, message in MESSAGES:
        if match := re.match(pattern, first_line):
            return message.format(match[1])
    reason = " ".join(str(cause).partition("Config search path")[0].split()) if cause else ""
    return ": ".join(filter(None, (error_text, reason)))


def _explain_unknown_option(cause: OmegaConfBaseException, configs: Path) -> str:
    """Return a line such as `selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie`.

    `cause` is OmegaConf's error; `configs` is the folder of the config groups.
    """
    group, _, key = str(cause.full_key).rpartition(".")
    node = cause.parent_node if isinstance(cause.parent_node, DictConfig) else DictConfig({})  # seed.x: a number
    names = [str(name) for name in node if name not in ("_target_", "hydra")]
    if not group:
        groups = {path.name for path in configs.iterdir() if path.is_dir()}
        nested_options = [
            f"{name}.{option}" for name in names if isinstance(node[name], DictConfig) for option in node[name]
        ]
        if paths := [path for path in nested_options if path.endswith(f".{key}") or path.replace(".", "_") == key]:
            return f"there is no option {key!r}; did you mean {' or '.join(paths)}?"
        return str(make_unknown_option_error("", key, {*names, *groups} - {"hydra"}))
    if not node:
        mapping = f"{group}={{{key}: VALUE}}"
        return f"{group} has no option {key!r}; it is a single value: type {group}=VALUE, or '{mapping}' for a mapping"
    yaml_texts = {choice: (configs / group / f"{choice}.yaml").read_text() for choice in list_choices(configs, group)}
    option_pattern = re.compile(rf"^(  )?{re.escape(key)}:", re.MULTILINE)
    choices_with_option = [choice for choice, yaml_text in yaml_texts.items() if option_pattern.search(yaml_text)]
    other_choices = f"; {key!r} is an option of {group}={', '.join(choices_with_option)}" if choices_with_option else ""
    target = str(node.get("_target_", "")).split(".")
    if target[:2] == ["fedcohort", group] and len(target) > 2:  # a choice is its path: fedcohort.selector.ucb_cs.UcbCs
        group = f"{group}={target[2]}"
    return f"{make_unknown_option_error(group, key, names)}{other_choices}"
