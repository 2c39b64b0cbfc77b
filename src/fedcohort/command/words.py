"""Read what is typed after a command: options as name=value, and folders of runs."""

from collections.abc import Collection, Sequence
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.startup.options import unknown_option_error


def read_options(words: Sequence[str], names: Collection[str]) -> dict[str, str]:
    """Return the options in `words` by name. Raises `OptionError` for one that is not in `names`."""
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"can't read {word!r}: type name=value, where name is one of {', '.join(names)}")
        if name not in names:
            raise unknown_option_error("", name, names)
        options[name] = value
    return options


def folders_and_options(words: Sequence[str], names: Collection[str]) -> tuple[list[Path], dict[str, str]]:
    """Return the folders of runs, and the options by name; a folder's name may hold a =.

    Raises:
        OptionError: for an option that is not in `names`, and where no folder is named.
    """
    folders = [word for word in words if word.partition("=")[0] not in names and ("=" not in word or "/" in word)]
    options = read_options([word for word in words if word not in folders], names)
    if not folders:
        raise OptionError("name the folder of a run: logs/runs/<run>")
    return [Path(folder) for folder in folders], options
