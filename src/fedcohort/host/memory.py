"""What the C library and the garbage collector do with free memory, and a check of large needs before they arise."""

import ctypes
import gc
import math
import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.host import control_groups

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
SMALL = 2**26  # bytes that are not checked
GROWTH = 2**26  # bytes of what runs left behind that are worth a full pass of the collector, a quarter of a second


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
    """Return what is free to the system: what was kept would grow with the runs of a process."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@dataclass
class Held:
    """What the process held when runs' leavings were last collected, in bytes."""

    bytes: float = 0.0


_held = Held()


def end_run() -> None:
    """Give back what a run held, as after one of many in one process.

    Lightning's objects refer to each other, so that a run's data stay until the collector's next full pass, which goes
    by the number of new objects: data of 200 MB would be there twenty times by then.
    """
    if resident() - _held.bytes > GROWTH:
        gc.collect()
        give_back()
        _held.bytes = resident()
    else:
        give_back()


def resident() -> float:
    """Return what the process holds in memory, in bytes; infinity where the system doesn't tell."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return math.inf


def available() -> float:
    """Return the bytes that this process can still take; infinity where the system does not tell.

    It is the smallest of what the machine has, what the control group leaves, and what `ulimit -v` leaves.
    """
    limits = [math.inf]
    with suppress(OSError, LookupError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    limits.append(control_groups.memory_left())
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        with suppress(OSError, LookupError):
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limits.append(float(address_space - pages * os.sysconf("SC_PAGE_SIZE")))
    return max(0.0, min(limits))


def require(needed: float, what: str, cure: str) -> None:
    """Raise `OptionError` where `needed` bytes, a lower bound, are more than are available.

    Nothing else depends on the available memory: equal configs train in equal ways on every machine.

    Args:
        needed: bytes.
        what: what takes them, the beginning of the message.
        cure: what the user can change.
    """
    if needed > SMALL and needed > (free := available()):
        needs = f"{what} needs at least {needed / 1e9:.1f} GB of memory"
        raise OptionError(f"{needs}, {free / 1e9:.1f} GB are available: {cure}")
