"""The errors that a user can act on. Each message names the option to change."""

import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any


class FedcohortError(Exception):
    """The base of all errors that end a run with a message instead of a traceback."""


class OptionError(FedcohortError, ValueError):
    """An error for an option whose value is outside its range."""


class IncompatibleConfig(FedcohortError):
    """An error for options that are each valid, but can't be combined."""


class DataError(FedcohortError):
    """An error for a dataset that is missing, malformed or too small for the options."""


class UndeclaredSignal(FedcohortError):
    """An error for a selector or aggregator that reads a signal which it does not declare in `needs`."""


class CheckpointError(FedcohortError):
    """An error for a checkpoint that can't be used: it is truncated, or of another config or a newer version."""


class DamagedCheckpoint(CheckpointError):
    """An error for a checkpoint, or a file of stored client vectors, that differs from what was written."""


class DamagedFile(CheckpointError):
    """An error for a file of a run or study that differs from what was written; the message says what to do."""


class DiskError(FedcohortError):
    """An error for a full disk, or a file of a run that can't be written for another reason."""


class TrackingError(FedcohortError):
    """An error for a tracking server that can't be used as configured."""


class ComponentError(FedcohortError):
    """An error for a component that raised an exception, or returned a value that its contract does not allow."""


def renamed_attribute(old_name: str, new_name: str) -> property:
    """Return a property that raises `ComponentError` for a renamed attribute; it is kept for one release.

    Args:
        old_name: class and former name of the attribute, for the message.
        new_name: name of the attribute now, for the message.
    """

    def raise_error(_: object) -> None:
        raise ComponentError(f"{old_name} is called {new_name} now: use it")

    return property(raise_error)


def renamed_names(module_name: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which raises `ComponentError` with the new name of a former one.

    Args:
        module_name: name of the module, for the message.
        new_names: new name by former name, kept for one release.
    """

    def raise_error(attribute_name: str) -> Any:  # noqa: ANN401
        if attribute_name in new_names:
            raise ComponentError(f"{module_name}.{attribute_name} is called {new_names[attribute_name]} now: use it")
        raise AttributeError(attribute_name)

    return raise_error


class ClientError(FedcohortError):
    """An error for a failed local training with engine=debug; the message names the round, the client and the step."""


class LibraryMismatch(FedcohortError):
    """An error for a library without a private function or message on which a `compat.py` of this package relies.

    Args:
        library: name of the installed package.
        missing_part: the function or message that is missing, for the message.
        purpose: what this package does with that function, a verb phrase for the message.
        known_version: last version of the library that is known to have the function.
    """

    def __init__(self, library: str, missing_part: str, purpose: str, known_version: str) -> None:
        problem_text = f"{missing_part}, which {purpose}, differs from that of {library} {known_version}"
        remedy_text = f"install {library}=={known_version} (constraints.txt), or adapt the compat.py that uses it"
        super().__init__(f"{library} {version(library)} is installed, and {problem_text}: {remedy_text}")


def describe_unexpected_error(error: BaseException) -> str:
    """Return the type and message of `error`, and file and line of its innermost frame.

    Frames of installed libraries are skipped, because the cause is more likely in the code that calls them.
    """
    stack_frames = traceback.extract_tb(error.__traceback__)
    frames_outside_libraries = [f for f in stack_frames if "site-packages" not in f.filename] or list(stack_frames)
    error_location = (
        f" ({frames_outside_libraries[-1].filename}:{frames_outside_libraries[-1].lineno})"
        if frames_outside_libraries
        else ""
    )
    return f"{type(error).__name__}: {error}{error_location}"
