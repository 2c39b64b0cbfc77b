"""How many cores this process may use."""

import math
import os
from contextlib import suppress
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available() -> int:
    """Cores of this process's affinity, or fewer where its container has a quota of processor time; at least 1."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(known, quota())))


def quota(groups: Path = GROUPS, own: Path = OWN) -> float:
    """The smallest quota of this process's control group and those above it, in cores; infinite without one.

    Args:
        groups: where control groups are mounted.
        own: the file that names this process's; both as Linux has them, in the first version and the second.
    """
    shares = [math.inf]
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            top = groups / "cpu" if controllers else groups
            folder = top / group.lstrip("/")
            above = [each for each in (folder, *folder.parents) if each.is_relative_to(top)]
            shares += [_share(each) for each in above]
    return min(shares)


def _share(folder: Path) -> float:
    """Return the share of one control group, in cores."""
    try:
        if (folder / "cpu.max").exists():
            allowed, period = (folder / "cpu.max").read_text().split()
        else:
            allowed, period = ((folder / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return math.inf if allowed in ("max", "-1") else int(allowed) / int(period)
    except (OSError, ValueError):
        return math.inf
