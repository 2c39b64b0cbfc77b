"""The errors that a user can act on; each message names the option to change."""

import traceback
from importlib.metadata import version


class FedcohortError(Exception):
    """Base of all errors that end a run with a message instead of a traceback."""


class OptionError(FedcohortError, ValueError):
    """An option has a value outside its range."""


class IncompatibleConfig(FedcohortError):
    """Options that are legal alone and meaningless together."""


class DataError(FedcohortError):
    """A dataset is missing, malformed or too small for what is asked of it."""


class UndeclaredSignal(FedcohortError):
    """A selector or aggregator read a signal that it does not declare in `needs`."""


class CheckpointError(FedcohortError):
    """A checkpoint can't be used: truncated, of another config, or of a newer version."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint, or what clients keep beside it, isn't what was written."""


class DamagedFile(CheckpointError):
    """A file of a run or of a study isn't what was written: the message names it, and what to do."""


class DiskError(FedcohortError):
    """The disk is full, or refuses for another reason what a run writes."""


class TrackingError(FedcohortError):
    """The tracking server can't be used as configured."""


class ComponentError(FedcohortError):
    """A part of the run raised, or returned what its contract does not allow."""


class ClientError(FedcohortError):
    """A client's local training failed: which client, in which round, at which stage (engine=debug)."""


class ForeignChange(FedcohortError):
    """A library no longer has a private part, or a wording, that a room's `compat.py` rests on.

    Args:
        library: its name among the installed packages.
        part: what is missing.
        use: what rests on it.
        read_in: the version in which it was read.
    """

    def __init__(self, library: str, part: str, use: str, read_in: str) -> None:
        installed = version(library)
        super().__init__(
            f"{library} {installed} is installed, and {part}, which {use}, is not as it was in {library} {read_in}: "
            f"install {library}=={read_in} (constraints.txt), or mend the room's compat.py"
        )


def describe(error: BaseException) -> str:
    """Return the type of an unexpected error, its message, and the file and line that raised it.

    The line is the innermost one outside of installed libraries: it is the one to look at.
    """
    frames = traceback.extract_tb(error.__traceback__)
    sources = [each for each in frames if "site-packages" not in each.filename] or list(frames)
    where = f" ({sources[-1].filename}:{sources[-1].lineno})" if sources else ""
    return f"{type(error).__name__}: {error}{where}"
