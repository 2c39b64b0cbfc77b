"""Limits of the Linux control groups of this process, versions 1 and 2, as containers and SLURM jobs have them."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOUNT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def list_folders(controller: str) -> Iterator[Path]:
    """Yield the folders with the files of `controller`, of this process's group and of the groups above it.

    In a container the group may have the host's path, whose folder does not exist; the mount is the group then.
    """
    with suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                top = MOUNT / controller if controllers else MOUNT
                folder = top / name.lstrip("/")
                yield from (group for group in (folder, *folder.parents) if group.is_relative_to(top))


def cpu_quota() -> float:
    """Return the smallest quota of processor time, in cores; infinity without one."""
    quotas = [math.inf]
    for folder in list_folders("cpu"):
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            with suppress(OSError, ValueError):  # no such file, or "max"
                allowed, period = map(int, " ".join((folder / name).read_text() for name in names).split())
                quotas.append(allowed / period if allowed >= 0 else math.inf)
    return min(quotas)


def memory_left() -> float:
    """Return the bytes below the tightest memory limit; memory that the kernel can reclaim counts as free."""
    bytes_left = [math.inf]
    for folder in list_folders("memory"):
        for limit, usage in (("memory.max", "anon"), ("memory.limit_in_bytes", "total_rss")):
            with suppress(OSError, ValueError, KeyError):  # no such file, or "max"
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                bytes_left.append(float(int((folder / limit).read_text()) - int(stat[usage])))
    return min(bytes_left)
