"""Absolute paths from paths that users type."""

import os
from pathlib import Path


def expand_home(path: str) -> Path:
    """Return `path` with the home folder in the place of `~`.

    If the home folder is not known, `~` stays, so that the path is reported as a missing folder.
    """
    return Path(os.path.expanduser(path))
