"""Name and instruction sets of this machine's processor."""

import platform
import re
from pathlib import Path

CPU_INFO_FILE = Path("/proc/cpuinfo")
BF16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}  # the first two are of x86, the others of Arm


def name_processor(cpu_info_path: Path = CPU_INFO_FILE) -> str:
    """Return the model of the processor, such as "AMD EPYC", from the file in which Linux lists it; else its kind."""
    try:
        model = re.search(r"model name\s*: (.*)", cpu_info_path.read_text())
    except OSError:
        model = None
    return model[1] if model else platform.machine()


def has_bf16(cpu_info_path: Path = CPU_INFO_FILE) -> bool | None:
    """Return whether the processor has instructions for bfloat16; None if the system does not report it.

    cpu_info_path: file in which Linux lists the processor's instruction sets.
    """
    try:
        cpu_flag_lines = re.findall(r"^(?:flags|Features)\s*:(.*)$", cpu_info_path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return not BF16_INSTRUCTIONS.isdisjoint(cpu_flag_lines[0].split()) if cpu_flag_lines else None
