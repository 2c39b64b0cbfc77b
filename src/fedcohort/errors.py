"""The errors that a user can act on. Each message names the option to change."""

import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any


class FedcohortError(Exception):
    """Base of all errors that end a run with a message instead of a traceback."""


class OptionError(FedcohortError, ValueError):
    """An option has a value outside its range."""


class IncompatibleConfig(FedcohortError):
    """Options that are each valid, but can't be combined."""


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


def renamed_attribute(old_name: str, new_name: str) -> property:
    """Return a property that raises `ComponentError` with the new name of an attribute, for one release."""

    def raise_error(_: object) -> None:
        raise ComponentError(f"{old_name} is called {new_name} now")

    return property(raise_error)


def renamed_names(module_name: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which raises `ComponentError` with the new name of a former one.

    Args:
        module_name: name of the module, for the message.
        new_names: new name by former name, kept for one release.
    """

    def raise_error(name: str) -> Any:  # noqa: ANN401
        if name in new_names:
            raise ComponentError(f"{module_name}.{name} is called {new_names[name]} now")
        raise AttributeError(name)

    return raise_error


class ClientError(FedcohortError):
    """A client's local training failed. The message names client, round and stage (engine=debug)."""


class LibraryMismatch(FedcohortError):
    """A library lacks a private function, or has changed a message, on which a `compat.py` of this package relies.

    Args:
        library: its name as an installed package.
        missing_part: the function or message that is missing.
        purpose: the purpose for which this package uses that function, a verb phrase.
        known_version: the last version of the library that is known to have it.
    """

    def __init__(self, library: str, missing_part: str, purpose: str, known_version: str) -> None:
        message_start = (
            f"{library} {version(library)} is installed, and {missing_part}, which {purpose}, differs from that of"
        )
        remedy = f"install {library}=={known_version} (constraints.txt), or adapt the compat.py that uses it"
        super().__init__(f"{message_start} {library} {known_version}: {remedy}")


def describe_unexpected_error(error: BaseException) -> str:
    """Return the type of an unexpected error, its message, and file and line of the innermost frame.

    Frames of installed libraries are skipped, because the cause is more likely in the code that calls them.
    """
    frames = traceback.extract_tb(error.__traceback__)
    frames_to_name = [frame for frame in frames if "site-packages" not in frame.filename] or list(frames)
    error_location = f" ({frames_to_name[-1].filename}:{frames_to_name[-1].lineno})" if frames_to_name else ""
    return f"{type(error).__name__}: {error}{error_location}"
