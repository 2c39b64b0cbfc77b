"""What the processor of this machine can compute natively."""

import re
from pathlib import Path

INFO = Path("/proc/cpuinfo")
BF16 = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}  # of x86, and of Arm


def has_bf16(info: Path = INFO) -> bool | None:
    """Return whether the processor has instructions for bfloat16; None where the system doesn't say.

    info: the file in which Linux lists the processor's instruction sets.
    """
    try:
        lines = re.findall(r"^(?:flags|Features)\s*:(.*)$", info.read_text(), re.MULTILINE)
    except OSError:
        return None
    return not BF16.isdisjoint(lines[0].split()) if lines else None
