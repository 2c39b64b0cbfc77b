"""Where observers print: the width of a terminal, and lines that are never folded where the output is a file."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNFOLDED = 500  # columns: paths and commands in a log can be copied


def console() -> "Console":
    """A Rich console on the standard output."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=UNFOLDED)
