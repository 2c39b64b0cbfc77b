"""The processor that a benchmark runs on, for its page."""

import re
from pathlib import Path


def name_processor() -> str:
    """Return the model of the processor, such as "AMD EPYC"."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return model[1] if model else "an unknown processor"
