"""What the C library and the garbage collector do with memory that is free."""

import ctypes
import gc
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def keep_freed_memory() -> None:
    """Let the C library reuse large blocks instead of returning them to the system and faulting them in again.

    Activations of a convolution come and go with every mini-batch: without this their page faults are a third of an
    evaluation's time. Nothing happens where the library has no `mallopt`.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 2**30)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def share_with_children() -> None:
    """Prepare memory for forks: give back what is free, keep the garbage collector off what is not.

    Its passes write into every object's header, and a page that is written to is no longer shared.
    """
    gc.collect()
    gc.freeze()
    give_back()


def give_back() -> None:
    """Return what is free to the system, as after a run of many in one process: what was kept would grow with them."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
