"""Where observers print: the width of a terminal, and lines that are never folded where the output is a file."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import FedcohortError
from fedcohort.host.interrupt import interrupts
from fedcohort.host.standard_output import discard_output

if TYPE_CHECKING:
    from rich.console import Console

UNWRAPPED_LINE_WIDTH = 500  # columns: paths and commands in a log can be copied
_IS_PROGRESS_ONLY = ContextVar("brief", default=False)


@contextmanager
def print_progress_only() -> Iterator[None]:
    """Let runs in a block print their progress only, without the tables at their start and end."""
    context_token = _IS_PROGRESS_ONLY.set(True)
    try:
        yield
    finally:
        _IS_PROGRESS_ONLY.reset(context_token)


def is_progress_only() -> bool:
    """Return whether runs print their progress only."""
    return _IS_PROGRESS_ONLY.get()


def make_console() -> "Console":
    """Return a Rich console on the standard output. A closed pipe (`| head`) ends the run as a signal does."""
    from rich.console import Console

    class StandardOutput(Console):
        def on_broken_pipe(self) -> None:
            discard_output()
            interrupts.note_closed_pipe()

    output_console = StandardOutput(highlight=False)
    return output_console if output_console.is_terminal else StandardOutput(highlight=False, width=UNWRAPPED_LINE_WIDTH)


def print_for_each(folders: Sequence[Path], describe_folder: Callable[[Path], str]) -> int:
    """Print a text about each folder, or the error that `describe_folder` raises for it.

    Args:
        folders: the folders.
        describe_folder: function from a folder to its text.

    Returns:
        1 if a folder had an error, else 0.
    """
    from rich.console import Console

    standard_console, error_console = make_console(), Console(stderr=True, soft_wrap=True, highlight=False)
    exit_code = 0
    for folder in folders:
        try:
            standard_console.print(describe_folder(folder.absolute()), soft_wrap=True, markup=False)
        except FedcohortError as error:
            error_console.print(str(error), markup=False)
            exit_code = 1
    return exit_code
