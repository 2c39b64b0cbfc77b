"""Read what is typed after a command: options as name=value, and folders of runs."""

from collections.abc import Collection, Sequence
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.startup.options import make_unknown_option_error


def read_options(arguments: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """Return the options in `arguments` by name; raise `OptionError` for one without = or not in `names`."""
    options = {}
    for argument in arguments:
        option_name, equals_sign, option_value = argument.partition("=")
        if not equals_sign:
            raise OptionError(f"can't read {argument!r}: type name=value, where name is one of {', '.join(names)}")
        if option_name not in names:
            raise make_unknown_option_error("", option_name, names)
        options[option_name] = option_value
    return options


def read_folders_and_options(arguments: Sequence[str], names: Collection[str]) -> tuple[list[Path], dict[str, str]]:
    """Return the folders of runs in the arguments, and the options by name; a folder's name may hold a =.

    Args:
        arguments: what was typed after the command.
        names: names of the valid options.

    Raises:
        OptionError: an option is not in `names`, or no folder is named.
    """
    run_folders = [a for a in arguments if a.partition("=")[0] not in names and ("=" not in a or "/" in a)]
    options = read_options([argument for argument in arguments if argument not in run_folders], names)
    if not run_folders:
        raise OptionError("type the folder of a run, such as logs/runs/NAME")
    return [Path(folder) for folder in run_folders], options
