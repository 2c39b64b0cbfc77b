"""Read what is typed after a command: folders as they are, options as name=value."""

from collections.abc import Collection, Sequence
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.startup.options import unknown


def folders_and_options(words: Sequence[str], known: Collection[str]) -> tuple[list[Path], dict[str, str]]:
    """Return the folders of runs, and the options by name.

    Raises:
        OptionError: for an option that is not in `known`, and where no folder is named.
    """
    folders = [Path(word) for word in words if word.partition("=")[0] not in known and ("=" not in word or "/" in word)]
    options = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and Path(word) not in folders:
            if name not in known:
                raise unknown("", name, known)
            options[name] = value
    if not folders:
        raise OptionError("name the folder of a run: logs/runs/<run>")
    return folders, options
