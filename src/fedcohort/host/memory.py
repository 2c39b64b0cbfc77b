"""Settings of the C library and the garbage collector for free memory, and checks of available memory."""

import ctypes
import gc
import math
import os
import resource
from contextlib import suppress
from pathlib import Path

from fedcohort.errors import OptionError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
MIN_CHECKED_BYTES = 2**26  # bytes below which a need is not checked
# bytes of the process after the last garbage collection by `collect_garbage_after_run`
_RESIDENT_BYTES_BY_TIME = {"after collection": 0.0}
MIN_GROWTH_BYTES = 2**26  # bytes of growth from which a full garbage collection, which takes 0.25 s, is worth its time


def reuse_freed_memory() -> None:
    """Let the C library reuse large blocks instead of returning them to the system.

    Activations of a convolution are allocated in every mini-batch; their page faults would take a third of an
    evaluation's time. Without effect if the library has no `mallopt`.
    """
    with suppress(OSError, AttributeError):
        c_library = ctypes.CDLL(None)
        c_library.mallopt(M_MMAP_THRESHOLD, 2**30)
        c_library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def share_memory_with_children() -> None:
    """Prepare memory for forks: return free memory, and exclude existing objects from garbage collection.

    The collector writes into the header of every object, and a page that is written to is no longer shared.
    """
    gc.collect()
    gc.freeze()
    return_memory_to_system()


def enable_garbage_collection() -> None:
    """Enable garbage collection if it is disabled, and exclude the existing objects from it.

    A process that starts a run disables it for its imports. These create half a million objects and no garbage, and
    collections would take a tenth of their time.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def return_memory_to_system() -> None:
    """Return free memory to the system, because it would otherwise grow with the runs of a process."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def collect_garbage_after_run() -> None:
    """Free the memory of a run that has ended, when one process makes many runs.

    Lightning's objects refer to each other, so that a run's data stay in memory until the next full garbage collection.
    Python starts it after many new objects: up to then, data of 200 MB would be in memory twenty times.
    """
    has_memory_grown = read_resident_bytes() - _RESIDENT_BYTES_BY_TIME["after collection"] > MIN_GROWTH_BYTES
    if has_memory_grown:
        gc.collect()
    return_memory_to_system()
    if has_memory_grown:
        _RESIDENT_BYTES_BY_TIME["after collection"] = read_resident_bytes()


def read_resident_bytes() -> float:
    """Return the bytes of the process that are in memory; infinity if the system does not report it."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return math.inf


def read_available_bytes() -> float:
    """Return the bytes that this process can still allocate; infinity if the system does not report them.

    The result is the minimum of the machine's free memory and of the limit of `ulimit -v`.
    """
    byte_limits = [math.inf]
    with suppress(OSError, LookupError, ValueError):
        memory_lines = Path("/proc/meminfo").read_text().splitlines()
        byte_limits += [
            1024.0 * int(memory_line.split()[1])
            for memory_line in memory_lines
            if memory_line.startswith("MemAvailable:")
        ]
    address_space_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space_limit != resource.RLIM_INFINITY:
        with suppress(OSError, LookupError):
            n_pages = int(Path("/proc/self/statm").read_text().split()[0])
            byte_limits.append(float(address_space_limit - n_pages * os.sysconf("SC_PAGE_SIZE")))
    return max(0.0, min(byte_limits))


def require_memory(needed_bytes: float, owner_name: str, advice_on_error: str) -> None:
    """Raise `OptionError` if more bytes are needed than are available.

    Nothing else depends on the available memory, so that equal configs give equal runs on every machine.

    Args:
        needed_bytes: lower bound of the bytes that are needed.
        owner_name: the part of the run that needs them, with which the message begins.
        advice_on_error: the options that the user can change.
    """
    if needed_bytes > MIN_CHECKED_BYTES and needed_bytes > (free_bytes := read_available_bytes()):
        raise OptionError(
            f"{owner_name} needs at least {needed_bytes / 1e9:.1f} GB of memory, {free_bytes / 1e9:.1f} GB are "
            f"available: {advice_on_error}"
        )
