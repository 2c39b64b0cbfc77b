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
from fedcohort.host.disk import describe_disk_error, is_disk_error
from fedcohort.startup.options import make_unknown_option_error

LOST_JOB_ERRORS = ("UncompletedJobError", "FailedJobError", "TerminatedWorkerError")  # errors of submitit and joblib
SWEEP_MESSAGE = "{0}: several values are a sweep, put -m first (python train.py -m ...); a list is typed as [a,b]"
# what to type for a file or a class of one's own
USER_CODE_OPTIONS = {"dataset": "dataset=folder dataset.path={}", "model": "model=module model.path={}"}
MESSAGE_BY_PATTERN = (  # pattern of the first line of Hydra's error, and the message
    (r"Ambiguous value for argument '(.*)'$", SWEEP_MESSAGE),
    (r"Sweep parameters '(.*)' requires", SWEEP_MESSAGE),
    (r"Could not append to config\. An item is already at '(.*)'", "{0} exists already: leave out the +"),
    (r"Multiple values for (\S+)\. ", "{0} is chosen already: leave out the +"),
    (
        r"Could not override '(\S+@\S+)'",
        "{0} has no effect: no chosen component contains another one, as objective=propfair and proxy=dataset do",
    ),
    (
        r"In 'dataset/(\w+)': Could not override",
        "dataset={0} also defines the clients, so that no other component can use it: choose another dataset, or "
        "proxy=folder to read a folder",
    ),
    (
        r"Could not delete from config\. '(.*)' does not exist",
        "~{0} deletes an option that does not exist: leave it out",
    ),
    (r"Could not delete '(.*)'\. No match", "~{0} deletes a choice that the config does not have: leave it out"),
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
    if is_disk_error(error):
        return describe_disk_error(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return f"there is not enough memory ({error_text[:200] or 'no reason given'}): HYDRA_FULL_ERROR=1 shows where"
    if isinstance(error, OverrideParseException):
        return (
            f"can't read {error.override!r}: type name=value, lists as [1,2], texts with spaces or accents as "
            "\"name='a b'\""
        )
    if isinstance(error, MissingConfigException):
        return _explain_missing_yaml(error, arguments, configs) or error_text
    if isinstance(error, HydraException):
        return _explain_hydra_error(error, error_text, configs)
    is_flag_error = isinstance(error, ValueError) and "flag can only be used" in error_text  # --resolve without --cfg
    if isinstance(error, OmegaConfBaseException) or type(error).__module__.startswith("yaml.") or is_flag_error:
        return error_text
    # null, or a number, for a group
    if isinstance(error, ValueError) and "Config group override must be" in error_text:
        for group, _, value in (argument.lstrip("+").partition("=") for argument in arguments):
            if (choices := list_choices(configs, group)) and value not in choices:
                return make_unknown_choice_message(configs, group, value)
        return f"can't read {' '.join(arguments)}: type name=value"
    if type(error).__name__ in LOST_JOB_ERRORS:
        error_lines = [error_line for error_line in str(error).splitlines() if error_line.strip("- ")]
        return f"a job was lost: {' '.join(error_lines[:2])}"  # the log of the job follows
    return f"SLURM rejected the jobs: {error_text}" if type(error).__module__.startswith("submitit") else None


@contextmanager
def raise_one_line_errors(arguments: Sequence[str], configs: Path) -> Iterator[None]:
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
        error_message = explain_error(error, arguments, configs)
        if error_message is None:
            raise
        raise OptionError(error_message) from None


def list_choices(configs: Path, group: str) -> list[str]:
    """Return the sorted choices of `group`: the names of the yamls in its folder below `configs`."""
    return sorted(p.stem for p in (configs / group).glob("*.yaml")) if group else []


def make_unknown_choice_message(configs: Path, group_key: str, choice: str, choices: Iterable[str] = ()) -> str:
    """Return the message for a choice that does not exist in its group.

    Args:
        configs: folder of the config groups.
        group_key: the group, perhaps with the node that it fills (`objective@objective.base`).
        choice: the choice that was typed.
        choices: the valid choices of the group; by default the names of the files in its folder.
    """
    group = group_key.partition("@")[0]
    error = ranges.unknown_choice_error(group_key, choice, list(choices) or list_choices(configs, group))
    if group in USER_CODE_OPTIONS and re.search(r"[./]", choice):
        return f"{error}. For your own, type {USER_CODE_OPTIONS[group].format(choice)}"
    other_choices = [f"{p.parent.name}={choice}" for p in sorted(configs.glob(f"*/{glob.escape(choice)}.yaml"))]
    return f"{error}. There is {' and '.join(other_choices)}" if other_choices else str(error)


def _explain_missing_yaml(error: MissingConfigException, arguments: Sequence[str], configs: Path) -> str | None:
    """Return the message for a choice without a yaml, which was typed or is named in another yaml; None if unclear.

    Args:
        error: Hydra's error.
        arguments: the command line.
        configs: folder of the config groups.
    """
    message_match = re.match(r"In '(.*?)': Could not \w+ '((?:hydra/)?[^/']*)/(.*?)'", str(error))
    if message_match is None:
        return None
    yaml_name, group, choice = message_match.groups()
    group_key = next((a.rpartition("=")[0] for a in arguments if a.startswith(f"{group}@")), group)
    error_message = make_unknown_choice_message(configs, group_key, choice, error.options or ())
    is_choice_typed = group_key != group or yaml_name in ("train", "hydra/config")
    return error_message if is_choice_typed else f"configs/{yaml_name}.yaml: {error_message}"


def _explain_hydra_error(error: HydraException, error_text: str, configs: Path) -> str:
    cause = error.__cause__
    if isinstance(cause, OmegaConfBaseException) and "not in " in str(cause) and cause.full_key:
        return _explain_unknown_option(cause, configs)
    first_error_line = str(error).partition("\n")[0]
    for error_pattern, message_template in MESSAGE_BY_PATTERN:
        if error_match := re.match(error_pattern, first_error_line):
            return message_template.format(error_match[1])
    cause_text = " ".join(str(cause).partition("Config search path")[0].split()) if cause else ""
    return ": ".join(filter(None, (error_text, cause_text)))


def _explain_unknown_option(cause: OmegaConfBaseException, configs: Path) -> str:
    """Return a line such as `selector=ucb_cs has no option 'discont'; its options are discount, index, sigma, tie`.

    `cause` is OmegaConf's error; `configs` is the folder of the config groups.
    """
    group, _, option = str(cause.full_key).rpartition(".")
    node = cause.parent_node if isinstance(cause.parent_node, DictConfig) else DictConfig({})  # seed.x: a number
    option_names = [str(k) for k in node if k not in ("_target_", "hydra")]
    if not group:
        group_names = {o.name for o in configs.iterdir() if o.is_dir()}
        nested_options = [f"{k}.{o}" for k in option_names if isinstance(node[k], DictConfig) for o in node[k]]
        if similar_options := [o for o in nested_options if o.endswith(f".{option}") or o.replace(".", "_") == option]:
            return f"there is no option {option!r}; did you mean {' or '.join(similar_options)}?"
        return str(make_unknown_option_error("", option, {*option_names, *group_names} - {"hydra"}))
    if not node:
        syntax_advice = f"type {group}=VALUE, or '{group}={{{option}: VALUE}}' for a mapping"
        return f"{group} has no option {option!r}; it is a single value: {syntax_advice}"
    yaml_texts = {c: (configs / group / f"{c}.yaml").read_text() for c in list_choices(configs, group)}
    option_pattern = re.compile(rf"^(  )?{re.escape(option)}:", re.MULTILINE)
    owner_choices = [c for c, yaml_text in yaml_texts.items() if option_pattern.search(yaml_text)]
    choices_hint = f"; {option!r} is an option of {group}={', '.join(owner_choices)}" if owner_choices else ""
    class_path_parts = str(node.get("_target_", "")).split(".")
    # A choice is its path: fedcohort.selector.ucb_cs.UcbCs
    if class_path_parts[:2] == ["fedcohort", group] and len(class_path_parts) > 2:
        group = f"{group}={class_path_parts[2]}"
    return f"{make_unknown_option_error(group, option, option_names)}{choices_hint}"
