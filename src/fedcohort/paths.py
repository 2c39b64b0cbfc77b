"""Absolute paths from paths that users type."""

import os
from pathlib import Path


def expand_home(path: str) -> Path:
    """Return the path, with the home folder in the place of `~`.

    A home folder that does not exist stays as it is typed, so that it is reported as a missing folder.
    """
    return Path(os.path.expanduser(path))
