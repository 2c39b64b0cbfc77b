"""The standard output whose reader has gone, as in `... | head`."""

import os
import select
import sys


def discard_standard_output() -> None:
    """Discard further standard output, because the process that reads it has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_output_closed() -> bool:
    """Return whether nothing reads the standard output any more."""
    output_poll = select.poll()
    output_poll.register(sys.stdout.fileno(), 0)
    return any(poll_event & select.POLLERR for _, poll_event in output_poll.poll(0))
