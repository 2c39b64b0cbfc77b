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


def check_run_name(option_name: str, value: object) -> None:
    """Raise `OptionError` if `value`, of the option `option_name`, cannot begin the name of the run's folder."""
    if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value)):
        raise ranges.range_error(option_name, "letters, digits, '.', '_' and '-', as in a file's name, or null", value)


def check_process_count(option_name: str, value: object, *, allow_auto: bool = False) -> None:
    """Raise `OptionError` if a number of processes or threads is out of range.

    Args:
        option_name: name of the option.
        value: value of the option.
        allow_auto: whether the value auto is allowed.
    """
    if allow_auto and value == "auto":
        return
    n_cores = cores.count_available_cores()
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_PER_CORE * n_cores:
        allowed_text = f"an integer in [1, {MAX_PER_CORE * n_cores}]{' or auto' if allow_auto else ''}"
        limit_reason = f"{MAX_PER_CORE} for each of the {n_cores} cores that this process may use"
        raise ranges.range_error(option_name, f"{allowed_text} ({limit_reason})", value)


def check_threads_of_forks(trainer_node: Mapping[str, Any]) -> None:
    """Raise `OptionError` if forked processes have several threads: a pool of threads does not survive a fork.

    `trainer_node` is the node of this name in the config.
    """
    n_devices = cores.count_available_cores() if trainer_node["devices"] == "auto" else trainer_node["devices"]
    uses_forked_processes = trainer_node["accelerator"] == "cpu" and trainer_node["num_nodes"] == 1 and n_devices > 1
    if uses_forked_processes and trainer_node["threads"] > 1:
        raise ranges.range_error(
            "trainer.threads",
            f"1 where trainer.devices={trainer_node['devices']} forks {n_devices} processes on one machine",
            trainer_node["threads"],
        )


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


def check_resume_mode(option_name: str, value: object) -> None:
    """Raise `OptionError` if `value` is invalid for the option `resume`; `option_name` is its name in the message."""
    if not isinstance(value, bool) and value not in ("previous", "force"):
        raise ranges.range_error(option_name, "true, false, previous or force", value)


def check_objective_metric(option_name: str, value: object) -> None:
    """Raise `OptionError` if `value`, of the option `option_name`, is no metric that a run may return to a sweeper."""
    allowed_metrics = ("server_val/acc", "server_val/loss")
    if value is not None and value not in allowed_metrics:
        reason = " (nothing may select on the test set)" if str(value).startswith(("test/", "clients/acc")) else ""
        raise OptionError(f"{option_name} must be one of {', '.join(allowed_metrics)}, or null, got {value!r}{reason}")


def check_writable_folder(option_name: str, value: object) -> None:
    """Raise `OptionError` if the folder `value` can't be written or created; `option_name` is the option's name.

    A temporary file is written for this check.
    """
    ranges.text(option_name, value)
    existing_folder = Path(str(value)).absolute()
    try:
        while not existing_folder.exists():
            existing_folder = existing_folder.parent
        with tempfile.TemporaryFile(dir=existing_folder):
            pass
    except OSError as error:
        raise OptionError(f"{option_name} must be a writable folder, got {value!r} ({error.strerror})") from error


OPTION_CHECKS: Mapping[str, OptionCheck] = {  # `round/settings.py` has the options that rounds read
    **{option: check_value for _, option, check_value in list_setting_checks()},
    "name": check_run_name,
    "data_seed": integer_check("[0, inf)", allow_null=True),
    "clients": integer_check("[1, inf)", allow_null=True),
    "resume": check_resume_mode,
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
    "trainer.devices": partial(check_process_count, allow_auto=True),
    "trainer.num_nodes": integer_check("[1, inf)"),
    "trainer.threads": check_process_count,
}


def describe_valid_options(option_names: Collection[str]) -> str:
    """Return the part of a message that lists the valid options `option_names`, as in "its options are a, b"."""
    if len(option_names) == 1:
        return f"its only option is {next(iter(option_names))}"
    return f"its options are {', '.join(option_names)}" if option_names else "it has no options"


def make_unknown_option_error(node_name: str, unknown_option: str, valid_options: Collection[str]) -> OptionError:
    """Return the error for an option that does not exist.

    Args:
        node_name: path of the option's node, or group=choice; "" for the top level.
        unknown_option: the option that was typed.
        valid_options: the valid options.
    """
    hint_text = ranges.did_you_mean(unknown_option, valid_options)
    owner_text, options_text = f"{node_name} has", describe_valid_options(valid_options)
    if not node_name:
        owner_text, options_text = "there is", f"there are {', '.join(sorted(valid_options))}"
    return OptionError(f"{owner_text} no option {unknown_option!r}; {options_text}{hint_text}")


@cache
def list_node_options(node_name: str) -> list[str]:
    """Return the options that belong to no component in the node `node_name` of the config.

    These are all options of `engine` and `trainer`, and some options of `deadline` and `device`.
    """
    return [option_name.split(".")[1] for option_name in OPTION_CHECKS if option_name.startswith(f"{node_name}.")]


def check_all_options(config: Mapping[str, Any]) -> None:
    """Raise `OptionError` if an option in `config` is unknown, missing or outside its range.

    Raises `IncompatibleConfig` if the cohort exceeds the number of clients.
    """
    for node in dict.fromkeys(option_name.split(".")[0] for option_name in OPTION_CHECKS if "." in option_name):
        option_names, node_options = list_node_options(node), config.get(node)
        if not isinstance(node_options, Mapping):
            raise ranges.range_error(
                node, f"set option by option ({', '.join(f'{node}.{name}' for name in option_names)})", node_options
            )
        # a component's constructor checks its options
        for option_name in node_options if "_target_" not in node_options else ():
            if option_name not in option_names:
                raise make_unknown_option_error(node, option_name, option_names)
    for option_name, check_option_value in OPTION_CHECKS.items():
        node, _, name = option_name.rpartition(".")
        node_options = config[node] if node else config
        if name not in node_options:
            raise OptionError(f"~{option_name} removes an option that the config does not have: leave it out")
        check_option_value(option_name, node_options[name])
    check_threads_of_forks(config["trainer"])
    if config["clients"] is not None and config["cohort"] > config["clients"]:
        raise IncompatibleConfig(f"cohort={config['cohort']} exceeds clients={config['clients']}: lower cohort")
    check_precision(config["engine"], config["trainer"]["accelerator"])
