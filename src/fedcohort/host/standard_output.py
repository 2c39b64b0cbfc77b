"""The standard output whose reader has gone, as in `... | head`."""

import os
import select
import sys


def discard_output() -> None:
    """Discard further standard output, because the process that reads it has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_output_closed() -> bool:
    """Return whether nothing reads the standard output any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
