"""Read the runs of a comparison from their folders, with the parameters and tags that MLflow is sent."""

from collections.abc import Iterable
from pathlib import Path

from fedcohort.record import folder, history, metadata
from fedcohort.record.tags import DONE, ENDED_BY
from fedcohort.results.matching.run import Run
from fedcohort.tracking import record


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """Return the runs in `folders`, the earliest first. Raises `CheckpointError` for a folder that holds no run."""
    return sorted(map(_read, folders), key=lambda run: (run.started_ms, run.name))


def _read(path: Path) -> Run:
    info, journal = metadata.load_info(path), history.read(path)
    status = folder.status_of(path)
    how = str(status.get("status", "running"))
    ends = {DONE: str(journal.steps[-1] if journal.steps else 0), ENDED_BY: ", ".join(status.get("ended_by", []))}
    return Run(
        id=path.name,
        name=info.name,
        status=how,
        started_ms=metadata.read_start_times(path)[0],
        params={**record.params(info), "rounds": str(info.rounds)},
        tags={**record.tags(info, how), **ends},
        metrics=journal.final,
    )
