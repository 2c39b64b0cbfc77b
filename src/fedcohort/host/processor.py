"""Instruction sets of this machine's processor."""

import re
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
BF16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}  # the first two are of x86, the others of Arm


def has_bf16(info: Path = CPU_INFO) -> bool | None:
    """Return whether the processor has instructions for bfloat16; None if the system does not report it.

    info: file in which Linux lists the processor's instruction sets.
    """
    try:
        lines = re.findall(r"^(?:flags|Features)\s*:(.*)$", info.read_text(), re.MULTILINE)
    except OSError:
        return None
    return not BF16_INSTRUCTIONS.isdisjoint(lines[0].split()) if lines else None
