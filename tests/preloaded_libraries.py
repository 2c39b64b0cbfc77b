"""The libraries that the fork server of `command_harness.py` imports once for all commands, and nothing of fedcohort.

Lightning is imported as in `fedcohort.lightning`, without torch's compiler. Only the file of its stand-ins is executed,
because each command imports the package itself, from its own checkout.
"""

import runpy
from pathlib import Path

import hydra  # noqa: F401
import pandas  # noqa: F401
import torch  # noqa: F401

DEFERRED_IMPORTS = Path(__file__).resolve().parents[1] / "src" / "fedcohort" / "lightning" / "deferred_imports.py"

with runpy.run_path(str(DEFERRED_IMPORTS))["defer_slow_imports"]():
    import lightning.pytorch  # noqa: F401

import matplotlib.figure  # noqa: E402, F401
