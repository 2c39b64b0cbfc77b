"""The errors that a user can act on. Each message names the option to change."""

import traceback
from importlib.metadata import version


class FedcohortError(Exception):
    """Base of all errors that end a run with a message instead of a traceback."""


class OptionError(FedcohortError, ValueError):
    """An option has a value outside its range."""


class IncompatibleConfig(FedcohortError):
    """Options that are valid on their own, but can't be combined."""


class DataError(FedcohortError):
    """A dataset is missing, malformed or too small for the options."""


class UndeclaredSignal(FedcohortError):
    """A selector or aggregator read a signal that it does not declare in `needs`."""


class CheckpointError(FedcohortError):
    """A checkpoint can't be used: it is truncated, or of another config or a newer version."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint, or the file of the clients' stored vectors, differs from what was written."""


class DamagedFile(CheckpointError):
    """A file of a run or of a study differs from what was written. The message names it and says what to do."""


class DiskError(FedcohortError):
    """The disk is full, or a file of a run can't be written for another reason."""


class TrackingError(FedcohortError):
    """The tracking server can't be used as configured."""


class ComponentError(FedcohortError):
    """A component raised an exception, or returned a value that its contract does not allow."""


def renamed(old: str, new: str) -> property:
    """Return a property that raises `ComponentError` with the new name of an attribute, for one release."""

    def raise_error(_: object) -> None:
        raise ComponentError(f"{old} is called {new} now")

    return property(raise_error)


class ClientError(FedcohortError):
    """A client's local training failed. The message names client, round and stage (engine=debug)."""


class ForeignChange(FedcohortError):
    """A library lacks a private function, or has changed a message, on which a `compat.py` of this package relies.

    Args:
        library: its name as an installed package.
        part: the function or message that is missing.
        use: what this package uses it for, a verb phrase.
        read_in: the last version of the library that is known to have it.
    """

    def __init__(self, library: str, part: str, use: str, read_in: str) -> None:
        installed = version(library)
        super().__init__(
            f"{library} {installed} is installed, and {part}, which {use}, differs from that of {library} {read_in}: "
            f"install {library}=={read_in} (constraints.txt), or adapt the compat.py that uses it"
        )


def describe(error: BaseException) -> str:
    """Return the type of an unexpected error, its message, and file and line of the innermost frame.

    Frames of installed libraries are skipped, because the cause is more likely in the code that calls them.
    """
    frames = traceback.extract_tb(error.__traceback__)
    sources = [frame for frame in frames if "site-packages" not in frame.filename] or list(frames)
    where = f" ({sources[-1].filename}:{sources[-1].lineno})" if sources else ""
    return f"{type(error).__name__}: {error}{where}"
