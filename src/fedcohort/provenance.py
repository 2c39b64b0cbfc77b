"""Where a result comes from: commit, versions. Every figure of a table is traced through these."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

CODE = ("src", "configs", "train.py", "pyproject.toml", "constraints.txt")  # what decides a result, from the top
PACKAGES = ("fedcohort", "torch", "lightning", "hydra-core", "mlflow", "numpy")


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def commit() -> tuple[str, bool]:
    """The commit of the code that runs, and whether it was changed since; ("unknown", True) outside of git.

    A new file of the code counts, committed or not; the tables that the papers' scripts write don't.
    """
    here = str(Path(__file__).parent)
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head, bool(_git(here, "status", "--porcelain", "--", *(f":(top){path}" for path in CODE)))
    except (OSError, subprocess.SubprocessError):
        return "unknown", True


def _git(where: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", where, *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
