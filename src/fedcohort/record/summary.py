"""Read `summary.json`, the result of a run."""

from pathlib import Path
from typing import Any

from fedcohort.record import digest, manifest


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of the run's `summary.json`; {} if the run has none yet. Raises `DamagedFile`."""
    path = folder / "summary.json"
    manifest.check_file(path)
    return digest.read_json(path, "Restore it from a copy") or {}
