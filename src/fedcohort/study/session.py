"""Lock a study for one command at a time, and print each warning of its runs once."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host import messages
from fedcohort.host.interrupt import interrupts
from fedcohort.host.lock import try_to_lock

LOCK_FILE = "study.lock"  # in the folder of the study's logs


@contextmanager
def lock_study(logs_folder: Path, print_line: Callable[[str], None]) -> Iterator[None]:
    """Lock a study in the `with` block, so that one process at a time writes its results.

    A signal in the block ends the process with its exit code.

    Args:
        logs_folder: folder of the study's logs, which has the lock.
        print_line: function that prints a line.

    Raises:
        CheckpointError: another process holds the lock.
    """
    logs_folder.mkdir(parents=True, exist_ok=True)
    lock_handle = try_to_lock(logs_folder / LOCK_FILE)
    if lock_handle is None:
        raise CheckpointError(
            f"another process runs the study {logs_folder.name}: wait until it ends (n_jobs=2 runs two jobs at a time)"
        )
    with lock_handle, print_warnings_once():
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            print_line("stopped; run the same command to continue")
            raise SystemExit(interrupts.exit_code or 1) from None


@contextmanager
def print_warnings_once() -> Iterator[None]:
    """Print each warning once, since hundreds of runs have the same warnings, and no other message."""
    terminal_handler, printed_warnings = messages.log_to_terminal(), set[str]()

    def is_new_warning(log_record: logging.LogRecord) -> bool:
        message_text = log_record.getMessage()
        is_new_warning_text = log_record.levelno >= logging.WARNING and message_text not in printed_warnings
        printed_warnings.add(message_text)
        return is_new_warning_text

    terminal_handler.addFilter(is_new_warning)
    try:
        yield
    finally:
        terminal_handler.removeFilter(is_new_warning)
