"""Destinations of log messages: the terminal without times and levels, and the run's log file with them."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fedcohort.errors import FedcohortError

log = logging.getLogger("fedcohort")


class _TerminalHandler(logging.StreamHandler[TextIO]):
    """A log handler for the present standard error, which notebooks and tests replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The standard error of the process at the time of a message."""
        return sys.stderr


def log_to_terminal() -> logging.Handler:
    """Write log messages to the terminal, without times and levels, and return the log handler that writes them."""
    log.setLevel(logging.INFO)
    log.propagate = False
    for added_log_handler in log.handlers:
        if isinstance(added_log_handler, _TerminalHandler):
            return added_log_handler
    terminal_handler = _TerminalHandler()
    log.addHandler(terminal_handler)
    return terminal_handler


def silence_lightning() -> None:
    """Hide Lightning's warnings and hints, which do not apply to federated runs; errors remain."""
    warnings.filterwarnings("ignore", module="lightning")
    for logger_name in ("lightning.pytorch", "lightning.fabric", "lightning", "torch.multiprocessing.spawn"):
        logging.getLogger(logger_name).setLevel(logging.ERROR)


class _LogFileHandler(logging.FileHandler):
    """A log handler that omits lines when the disk is full; the terminal shows them."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore the error of writing `record`, because the logging module would print a traceback for each line."""

    def close(self) -> None:
        with suppress(OSError):
            super().close()


@contextmanager
def log_to_file(run_folder: Path) -> Iterator[None]:
    """Write messages of the `with` block to `run.log` in the run folder `run_folder`, with the error that ends it."""
    file_handler = _LogFileHandler(run_folder / "run.log")
    file_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(file_handler)
    try:
        yield
    except Exception as error:  # the end of the command prints it on the terminal, possibly in another process
        error_trace = None if isinstance(error, FedcohortError) else (type(error), error, error.__traceback__)
        log_record = log.makeRecord(log.name, logging.ERROR, __file__, 0, "the run failed: %s", (error,), error_trace)
        file_handler.handle(log_record)
        raise
    finally:
        log.removeHandler(file_handler)
        file_handler.close()
