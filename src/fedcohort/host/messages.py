"""Where messages go: plain on the terminal, with times and levels into the run's log file."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fedcohort.errors import FedcohortError

log = logging.getLogger("fedcohort")


class _Terminal(logging.StreamHandler[TextIO]):
    """Writes to the standard error as it is now: a notebook and a test replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The standard error."""
        return sys.stderr


def to_terminal() -> None:
    """Plain messages on the terminal; the log file has times and levels."""
    log.setLevel(logging.INFO)
    if not any(isinstance(handler, logging.StreamHandler) for handler in log.handlers):
        handler = _Terminal()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
    log.propagate = False


def quiet_lightning() -> None:
    """Lightning's advice is about runs that it knows better than ours; errors stay."""
    warnings.filterwarnings("ignore", module="lightning")
    for name in ("lightning.pytorch", "lightning.fabric", "lightning", "torch.multiprocessing.spawn"):
        logging.getLogger(name).setLevel(logging.ERROR)


class _LogFile(logging.FileHandler):
    """A full disk costs the lines that don't fit; the terminal has them."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Nothing: logging's own would print a traceback for each line."""

    def close(self) -> None:
        with suppress(OSError):
            super().close()


@contextmanager
def to_file(path: Path) -> Iterator[None]:
    """Write messages into the log of the run folder `path`, and at its end the traceback of the error that ends it."""
    handler = _LogFile(path / "run.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    except Exception as error:  # the terminal shows it where the command ends, perhaps in another process
        trace = None if isinstance(error, FedcohortError) else (type(error), error, error.__traceback__)
        handler.handle(log.makeRecord(log.name, logging.ERROR, __file__, 0, "the run failed: %s", (error,), trace))
        raise
    finally:
        log.removeHandler(handler)
        handler.close()
