"""Where observers and commands print: pages that fit a terminal, and lines that a file never folds."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fedcohort.errors import FedcohortError
from fedcohort.host.disk import describe_disk_error, is_disk_error
from fedcohort.host.interrupt import interrupts
from fedcohort.host.standard_output import discard_standard_output

if TYPE_CHECKING:
    from rich.console import Console

UNWRAPPED_LINE_WIDTH = 500  # characters: paths and commands in a log can be copied
MAX_PAGE_WIDTH = 160  # characters of a line of a page on a terminal
MAX_CELL_WIDTH = 24  # characters of a table's cell that is not folded on a terminal
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
            discard_standard_output()
            interrupts.record_closed_pipe()

    output_console = StandardOutput(highlight=False)
    return output_console if output_console.is_terminal else StandardOutput(highlight=False, width=UNWRAPPED_LINE_WIDTH)


def print_line(line: str) -> None:
    """Print `line` at once, also into a pipe."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def print_markdown(markdown: str) -> None:
    """Print `markdown`: as it is into a file or a pipe, on a terminal as a page with aligned tables.

    A table that is wider than the terminal becomes several tables, each with the first column.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(markdown)
        return
    from rich import box
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, TableElement
    from rich.table import Table

    class SplitTable(TableElement):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            whole_table: Any = next(iter(super().__rich_console__(console, options)))
            for column in whole_table.columns:
                cell_width = max(map(len, [*str(column.header).split(), *map(str, column.cells)]))
                column.width = cell_width if cell_width <= MAX_CELL_WIDTH else None  # None takes the room that is left
                column.min_width, column.overflow = MAX_CELL_WIDTH, "fold"
            first_column, *other_columns = whole_table.columns
            column_blocks = [[first_column]]
            for column in other_columns:
                block_width = sum((c.width or MAX_CELL_WIDTH) + 2 for c in [*column_blocks[-1], column]) + 2
                if block_width > options.max_width and len(column_blocks[-1]) > 1:
                    column_blocks.append([first_column])
                column_blocks[-1].append(column)
            for column_block in column_blocks:
                block_table = Table(*column_block, box=box.SIMPLE, collapse_padding=True)
                block_table.rows = whole_table.rows
                yield block_table

    class MarkdownPage(Markdown):
        elements: ClassVar = {**Markdown.elements, "table_open": SplitTable}

    output_console = make_console()
    output_console.print(MarkdownPage(markdown), width=min(output_console.width, MAX_PAGE_WIDTH))


def print_for_each(run_folders: Sequence[Path], describe_folder: Callable[[Path], str]) -> int:
    """Print a text about each folder, or the error that `describe_folder` raises for it, also one of the disk.

    Args:
        run_folders: the folders.
        describe_folder: function from a folder to its text.

    Returns:
        2 if a folder had an error, else 0.
    """
    from rich.console import Console

    standard_console, error_console = make_console(), Console(stderr=True, soft_wrap=True, highlight=False)
    exit_code = 0
    for folder in run_folders:
        try:
            standard_console.print(describe_folder(folder.absolute()), soft_wrap=True, markup=False)
        except (FedcohortError, OSError) as error:
            if not isinstance(error, FedcohortError) and not is_disk_error(error):
                raise
            error_console.print(describe_disk_error(error) if is_disk_error(error) else str(error), markup=False)
            exit_code = 2
    return exit_code
