"""Ranges of the options that belong to no component: those of configs/train.yaml, `engine` and `trainer`."""

import re
import tempfile
from collections.abc import Collection, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.host import cores, processor
from fedcohort.round.settings import OptionCheck, choice_check, integer_check, list_setting_checks, number_check

MAX_PER_CORE = 8  # processes or threads: several per core can be useful to test that results do not depend on it


def check_run_name(option: str, value: object) -> None:
    """Raise `OptionError` if `value` cannot begin the name of the run's folder; `option` is its name in the message."""
    if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value)):
        raise ranges.range_error(option, "letters, digits, '.', '_' and '-', as in a file's name, or null", value)


def check_count_per_core(option: str, value: object, *, allow_auto: bool = False) -> None:
    """Raise `OptionError` if a number of processes or threads is out of range.

    Args:
        option: name of the option.
        value: value of the option.
        allow_auto: whether the value auto is allowed.
    """
    if allow_auto and value == "auto":
        return
    n_cores = cores.count_available_cores()
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_PER_CORE * n_cores:
        allowed_text = f"an integer in [1, {MAX_PER_CORE * n_cores}]{' or auto' if allow_auto else ''}"
        reason = f"{MAX_PER_CORE} for each of the {n_cores} cores that this process may use"
        raise ranges.range_error(option, f"{allowed_text} ({reason})", value)


def check_threads_of_forks(trainer_node: Mapping[str, Any]) -> None:
    """Raise `OptionError` if forked processes have several threads: a pool of threads does not survive a fork.

    `trainer_node` is the node of this name in the config.
    """
    n_devices = cores.count_available_cores() if trainer_node["devices"] == "auto" else trainer_node["devices"]
    forks_processes = trainer_node["accelerator"] == "cpu" and trainer_node["num_nodes"] == 1 and n_devices > 1
    if forks_processes and trainer_node["threads"] > 1:
        allowed_text = f"1 where trainer.devices={trainer_node['devices']} forks {n_devices} processes on one machine"
        raise ranges.range_error("trainer.threads", allowed_text, trainer_node["threads"])


def check_precision(engine_node: Mapping[str, Any], accelerator: str) -> None:
    """Raise `OptionError` for tf32 on a CPU. Raise it for bf16 on a CPU without bf16, unless `engine.force` is true.

    `engine_node` is the node of this name in the config; `accelerator` is "cpu" or "gpu".
    """
    if engine_node["precision"] == "tf32" and accelerator == "cpu":
        raise ranges.range_error("engine.precision", "float32 or bf16 with trainer=cpu, as only GPUs have tf32", "tf32")
    is_bf16_emulated = engine_node["precision"] == "bf16" and accelerator == "cpu" and processor.has_bf16() is False
    if is_bf16_emulated and not engine_node["force"]:
        allowed_text = "float32 on this processor, which lacks bf16 instructions and is some 8 times slower with bf16"
        raise ranges.range_error("engine.precision", f"{allowed_text} (engine.force=true overrides)", "bf16")


def check_resume(option: str, value: object) -> None:
    """Raise `OptionError` if `value` is invalid for the option `resume`; `option` is its name in the message."""
    if not isinstance(value, bool) and value not in ("previous", "force"):
        raise ranges.range_error(option, "true, false, previous or force", value)


def check_objective_metric(option: str, value: object) -> None:
    """Raise `OptionError` if `value` is no metric that a run may return to a sweeper; `option` is the option's name."""
    allowed_metrics = ("server_val/acc", "server_val/loss")
    if value is not None and value not in allowed_metrics:
        reason = " (nothing may select on the test set)" if str(value).startswith(("test/", "clients/acc")) else ""
        raise OptionError(f"{option} must be one of {', '.join(allowed_metrics)}, or null, got {value!r}{reason}")


def check_writable_folder(option: str, value: object) -> None:
    """Raise `OptionError` if the folder `value` can't be written or created; `option` is the option's name.

    A temporary file is written for this check.
    """
    ranges.text(option, value)
    nearest_folder = Path(str(value)).absolute()
    try:
        while not nearest_folder.exists():
            nearest_folder = nearest_folder.parent
        with tempfile.TemporaryFile(dir=nearest_folder):
            pass
    except OSError as error:
        raise OptionError(f"{option} must be a folder that can be written, got {value!r} ({error.strerror})") from error


OPTION_CHECKS: Mapping[str, OptionCheck] = {  # `round/settings.py` has the options that rounds read
    **{option: check_value for _, option, check_value in list_setting_checks()},
    "name": check_run_name,
    "data_seed": integer_check("[0, inf)", allow_null=True),
    "clients": integer_check("[1, inf)", allow_null=True),
    "resume": check_resume,
    "objective_metric": check_objective_metric,
    "split.server_val": number_check("(0, 0.5]"),
    "split.client_val": number_check("[0, 0.5]"),
    "split.limit": integer_check("[1, inf)", allow_null=True),
    "checkpoint.every": integer_check("[1, inf)"),
    "checkpoint.every_s": number_check("[0, inf)"),
    "engine.force": ranges.flag,
    "sweep.report": ranges.flag,
    "sweep.skip_refused": ranges.flag,
    "sweep.wait": ranges.flag,
    "paths.logs": check_writable_folder,
    "trainer.accelerator": choice_check("cpu", "gpu"),
    "trainer.devices": partial(check_count_per_core, allow_auto=True),
    "trainer.num_nodes": integer_check("[1, inf)"),
    "trainer.threads": check_count_per_core,
}


def spell_value(value: object) -> str:
    """Return `value` in the form in which users type it on the command line, such as null or true."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def describe_valid_options(option_names: Collection[str]) -> str:
    """Return the part of a message that lists the valid options `option_names`, as in "its options are a, b"."""
    if len(option_names) == 1:
        return f"its only option is {next(iter(option_names))}"
    return f"its options are {', '.join(option_names)}" if option_names else "it has no options"


def make_unknown_option_error(node_name: str, option: str, valid_options: Collection[str]) -> OptionError:
    """Return the error for an option that does not exist.

    Args:
        node_name: path of the option's node, or group=choice; "" for the top level.
        option: the option that was typed.
        valid_options: the valid options.
    """
    suggestion = ranges.did_you_mean(option, valid_options)
    if node_name:
        return OptionError(f"{node_name} has no option {option!r}; {describe_valid_options(valid_options)}{suggestion}")
    return OptionError(f"there is no option {option!r}; there are {', '.join(sorted(valid_options))}{suggestion}")


@cache
def list_node_options(node_name: str) -> list[str]:
    """Return the options of a node that belong to no component: all of `engine`, some of `deadline` and `device`."""
    return [option.split(".")[1] for option in OPTION_CHECKS if option.startswith(f"{node_name}.")]


def check_all_options(config: Mapping[str, Any]) -> None:
    """Raise `OptionError` if an option in `config` is unknown, missing or outside its range.

    Raises `IncompatibleConfig` if the cohort exceeds the number of clients.
    """
    for node in dict.fromkeys(option.split(".")[0] for option in OPTION_CHECKS if "." in option):
        option_names, node_options = list_node_options(node), config.get(node)
        if not isinstance(node_options, Mapping):
            allowed_text = f"set option by option ({', '.join(f'{node}.{name}' for name in option_names)})"
            raise ranges.range_error(node, allowed_text, node_options)
        # a component's constructor checks its options
        for option in node_options if "_target_" not in node_options else ():
            if option not in option_names:
                raise make_unknown_option_error(node, option, option_names)
    for option, check_value in OPTION_CHECKS.items():
        node, _, name = option.rpartition(".")
        node_options = config[node] if node else config
        if name not in node_options:
            raise OptionError(f"~{option} removes an option that the config does not have: leave it out")
        check_value(option, node_options[name])
    check_threads_of_forks(config["trainer"])
    if config["clients"] is not None and config["cohort"] > config["clients"]:
        raise IncompatibleConfig(f"cohort={config['cohort']} exceeds clients={config['clients']}")
    check_precision(config["engine"], config["trainer"]["accelerator"])
