"""Where observers print: the width of a terminal, and lines that are never folded where the output is a file."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.errors import FedcohortError
from fedcohort.host.interrupt import interrupts

if TYPE_CHECKING:
    from rich.console import Console

UNFOLDED = 500  # columns: paths and commands in a log can be copied


def console() -> "Console":
    """A Rich console on the standard output. Where nobody reads it any more (`| head`), the run ends as by a signal."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still printed goes nowhere
            interrupts.note_closed_pipe()

    found = Output(highlight=False)
    return found if found.is_terminal else Output(highlight=False, width=UNFOLDED)


def for_each(folders: Sequence[Path], describe: Callable[[Path], str]) -> int:
    """Print what `describe` says of each folder; 1 where it could not be done for one of them, which is said too."""
    from rich.console import Console

    out, errors = console(), Console(stderr=True, soft_wrap=True, highlight=False)
    failed = 0
    for folder in folders:
        try:
            out.print(describe(folder.absolute()), soft_wrap=True, markup=False)
        except FedcohortError as error:
            errors.print(str(error), markup=False)
            failed = 1
    return failed
