"""Read `summary.json`, the result of a run."""

import json
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import manifest


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of the run's `summary.json`; {} if the run has none yet. Raises `DamagedFile`."""
    path = folder / "summary.json"
    manifest.check_file(path)
    if not is_file(path):
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise DamagedFile(f"{path} is damaged: it is not valid JSON ({error}). Restore it from a copy") from error
