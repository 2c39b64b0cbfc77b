"""Commands as they can be typed here: a hint that is pasted must run, whether or not an environment is activated."""

import shlex
import shutil
import sys
from pathlib import Path


def fedcohort(verb: str) -> str:
    """The package's own command with its verb; through Python where its script isn't installed."""
    script = Path(sys.executable).with_name("fedcohort")
    return f"{command('fedcohort')} {verb}" if script.exists() else f"{command('python')} -m fedcohort {verb}"


def command(name: str) -> str:
    """`python`, `mlflow` of this environment: the bare name where the shell finds this one by it, else its path."""
    own = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if not own.exists() or (found is not None and Path(found).absolute() == own):
        return name
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))
