"""Check the command line before a config is composed, and report a mistake in one line.

HYDRA_FULL_ERROR=1 shows the traceback of a mistake, as with Hydra itself.
"""

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.host import secrets
from fedcohort.ranges import range_error
from fedcohort.startup import hydra_errors
from fedcohort.startup.options import OPTION_CHECKS

TRACEBACK_VARIABLE = "HYDRA_FULL_ERROR"
# the value of TRACEBACK_VARIABLE before each active call of `run_with_one_line_errors`
_traceback_settings: list[str | None] = []
PLUGIN_MODULES = {  # launchers and sweepers that are plugins, and a package that each requires
    "hydra/launcher=joblib": "hydra_plugins.hydra_joblib_launcher",
    "hydra/launcher=slurm": "submitit",
    "hydra/launcher=submitit_slurm": "submitit",
    "hydra/sweeper=optuna": "hydra_plugins.hydra_optuna_sweeper",
}
HYDRA_FLAGS = (
    *("--help", "--hydra-help", "--version", "--cfg", "--resolve", "--package", "--run", "--multirun", "--info"),
    *("--shell-completion", "--config-path", "--config-name", "--config-dir", "--experimental-rerun"),
)
# Options of Hydra that may be typed. Others would write outside paths.logs, or execute code that they name
SWEEP_DIR_OPTION = "hydra.sweep.dir"
HYDRA_OPTIONS = (
    *(SWEEP_DIR_OPTION, "hydra.sweeper", "hydra.launcher", "hydra.searchpath", "hydra.verbose", "hydra.job.env_set"),
    *("hydra/launcher", "hydra/sweeper", "hydra/help", "hydra/hydra_help", "hydra/hydra_logging"),
)
HYDRA_ADVICE = {  # what to type in place of a rejected option
    "hydra.run": "set paths.logs=FOLDER, or name=TEXT for the first part of the run folder's name",
    "hydra.output_subdir": "the run's folder has config.yaml",
    "hydra.mode": "put -m first for a sweep",
    "hydra.launcher.submitit_folder": "set paths.logs=FOLDER",
}
LOGS_OPTION = "${paths.logs}"


def run_with_one_line_errors(command: Callable[[], int | None], arguments: Sequence[str], config_dir: Path) -> int:
    """Check the command line and call `command`. Print a user's mistake in one line.

    Args:
        command: a command, or Hydra's main.
        arguments: the command line.
        config_dir: folder of the config groups.

    Returns:
        The exit code: that of the command (None is 0), or 2 after a mistake.
    """
    traceback_setting = os.environ.get(TRACEBACK_VARIABLE)
    _traceback_settings.append(traceback_setting)
    os.environ[TRACEBACK_VARIABLE] = "1"  # Hydra then raises its errors instead of printing them
    try:
        check_command_line(arguments, config_dir)
        return command() or 0
    except Exception as error:
        error_line = None if traceback_setting == "1" else hydra_errors.explain_error(error, arguments, config_dir)
        if error_line is None:
            raise
        sys.stderr.write(f"{error_line}\n")
        return 2
    finally:
        _traceback_settings.pop()
        os.environ.pop(TRACEBACK_VARIABLE)
        os.environ.update({} if traceback_setting is None else {TRACEBACK_VARIABLE: traceback_setting})


def check_command_line(arguments: Sequence[str], config_dir: Path) -> None:
    """Check the arguments, and that none of them holds a password, before Hydra composes the overrides.

    Args:
        arguments: the command line.
        config_dir: folder of the config groups.

    Raises:
        OptionError: an argument is invalid.
    """
    is_sweep = bool({"-m", "--multirun"} & set(arguments))  # whose config Hydra writes to a file
    secrets.check_for_passwords(arguments, list(config_dir.rglob("*.yaml")) if is_sweep else ())
    check_typed_arguments(arguments, config_dir)
    check_sweep_arguments(arguments)


def is_traceback_requested() -> bool:
    """Return whether the user has set HYDRA_FULL_ERROR=1; `run_with_one_line_errors` sets it for the time of a call."""
    return (_traceback_settings[0] if _traceback_settings else os.environ.get(TRACEBACK_VARIABLE)) == "1"


def check_typed_arguments(arguments: Sequence[str], config_dir: Path) -> None:
    """Check the form of options, and that no choice of a group is a path.

    A choice is the name of a file in its group's folder: `selector=../agg/fedavg` would make an aggregator a selector.

    Args:
        arguments: the command line.
        config_dir: folder of the config groups.

    Raises:
        OptionError: an argument has an invalid form.
    """
    check_hydra_options(arguments)
    _check_option_form(arguments, config_dir)
    argument_names = {argument.partition("=")[0] for argument in arguments}
    if {"-p", "--package"} & argument_names and not {"-c", "--cfg"} & argument_names:
        raise OptionError("--package has an effect only together with --cfg: leave it out")
    for argument in arguments:
        name, equals_sign, value = argument.partition("=")
        name = name.lstrip("+~")
        if argument.startswith("-") or not equals_sign:
            continue
        if not name:
            raise OptionError(f"can't read {argument!r}: type name=value")
        if (config_dir / name.partition("@")[0]).is_dir():
            for choice in re.split(r"[,\[\]()\s'\"]+", value):
                is_other_value = value.startswith("[") and re.fullmatch(r"[-+]?\d[\d.e+-]*|null|true|false", choice)
                is_path = choice.startswith("/") or choice.endswith(".yaml") or {".", ".."} & set(choice.split("/"))
                if is_path or is_other_value:
                    raise OptionError(hydra_errors.make_unknown_choice_message(config_dir, name, choice))


def _check_option_form(arguments: Sequence[str], config_dir: Path) -> None:
    """Raise `OptionError`, with the correct form, for `--selector flash`, `--selector=flash` and `selector = flash`.

    `arguments` is the command line; `config_dir` is the folder of the config groups.
    """

    def is_option(name: str) -> bool:
        option_match = re.fullmatch(r"(\w[\w/]{0,99})([.@].*)?", name)  # a path may be too long for a file's name
        return name in OPTION_CHECKS or (option_match is not None and (config_dir / option_match[1]).is_dir())

    for argument_index, argument in enumerate(arguments):
        next_arg, arg_after_next = [*arguments[argument_index + 1 :], "", ""][:2]
        name, equals_sign, value = argument.partition("=")
        is_next_value = bool(next_arg) and "=" not in next_arg and not next_arg.startswith("-")
        if name.startswith("--") and name not in HYDRA_FLAGS and (equals_sign or is_next_value or is_option(name[2:])):
            raise OptionError(f"{argument}: options have no dashes, type {name[2:]}={value or next_arg or 'VALUE'}")
        if not is_option(name):
            continue
        value_after_space = next_arg[1:] or arg_after_next if not equals_sign and next_arg.startswith("=") else ""
        if equals_sign and not value and is_next_value:
            value_after_space, next_arg = next_arg, ""
        if value_after_space:
            typed_text = f"{argument} {next_arg}".strip()
            raise OptionError(f"{typed_text}: options have no spaces around =, type {name}={value_after_space}")


def check_hydra_options(arguments: Sequence[str]) -> None:
    """Raise `OptionError` if one of the `arguments` would make Hydra write outside paths.logs or execute other code."""
    typed_options = [argument.lstrip("+~").partition("=") for argument in arguments if not argument.startswith("-")]
    logs_folder = next((value for name, _, value in reversed(typed_options) if name == "paths.logs"), "logs")
    for name, _, value in typed_options:
        if not re.match(r"hydra\b", name):
            continue
        advice_text = next((text for prefix, text in HYDRA_ADVICE.items() if _is_subkey(name, prefix)), "leave it out")
        if name == "hydra.launcher.submitit_folder" or not any(_is_subkey(name, prefix) for prefix in HYDRA_OPTIONS):
            raise OptionError(
                f"{name}={value} is rejected, as fedcohort makes the folders, the log and the callbacks of a run: "
                f"{advice_text}; the options of Hydra that may be typed are {', '.join(HYDRA_OPTIONS)}"
            )
        if name == SWEEP_DIR_OPTION and not is_inside_logs_folder(value, logs_folder):
            raise range_error(name, "a folder inside paths.logs, such as '${paths.logs}/sweeps/NAME'", value)


def _is_subkey(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith((f"{prefix}.", f"{prefix}@"))


def is_inside_logs_folder(tested_folder: str, logs_folder: str) -> bool:
    """Return whether `tested_folder` is below the folder `logs_folder`; links and `..` are resolved."""
    tested_path = tested_folder.strip("'\"").replace(LOGS_OPTION, logs_folder)
    if "${" in tested_path.replace("${now:", ""):
        return False
    return Path(logs_folder).resolve() in Path(tested_path).resolve().parents


def check_sweep_arguments(arguments: Sequence[str]) -> None:
    """Raise `OptionError` if a launcher or sweeper can't work: a plugin or program is missing, or an option is invalid.

    `arguments` is the command line. The check precedes Hydra's creation of the sweep's folder.
    """
    for argument in arguments:
        plugin_package, _, plugin_submodule = PLUGIN_MODULES.get(argument, "").partition(".")
        is_plugin_missing = importlib.util.find_spec(plugin_package) is None if plugin_package else False
        if is_plugin_missing or (plugin_submodule and importlib.util.find_spec(PLUGIN_MODULES[argument]) is None):
            install_command = 'pip install --constraint constraints.txt --editable ".[sweep]"'
            raise OptionError(f"{argument} needs a plugin: {install_command}")
    if not {"-m", "--multirun"} & set(arguments):
        return
    for argument in arguments:
        name, _, value = argument.partition("=")
        if argument == "hydra/launcher=submitit_local":
            raise OptionError(f"{argument}: its jobs outlive a killed sweep; use hydra/launcher=local instead")
        is_slurm_launcher = name == "hydra/launcher" and value.endswith("slurm")
        if is_slurm_launcher and not (shutil.which("sbatch") and shutil.which("srun")):
            advice_text = "run it on a machine where jobs are submitted"
            raise OptionError(f"{argument} needs SLURM's sbatch and srun on the PATH: {advice_text}")
        if name == "hydra.launcher.n_jobs" and value != "-1" and not re.fullmatch("[1-9][0-9]*", value):
            raise range_error(name, "an integer in [1, inf), or -1 for as many as there are cores", value)
        if name == "paths.logs":
            OPTION_CHECKS[name](name, value)
