"""The files of a run's per-client table: one per step until the run has finished, then one for all steps.

Each file is checked before it is read: a step's file by its digest in the journal, `clients.parquet` by the manifest.
Files of older versions have no digest; pyarrow must be able to read all of their pages.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host import parquet
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest

STEP_FILES_FOLDER = "clients"  # folder of the files of single steps
CLIENT_TABLE_FILE = "clients.parquet"
STEPS_METADATA_KEY = b"fedcohort.steps"  # key of the schema's metadata: the steps of the file
TABLE_REMEDY = "Restore it from a copy, or start the run again with resume=false"


def path_of_step(run_path: Path, step: int) -> Path:
    """Return the path of the per-client table of the round `step` in `run_path`, while the run has not finished."""
    return run_path / STEP_FILES_FOLDER / f"{step:06d}.parquet"


def find_damaged_steps(run_path: Path, digest_by_step: Mapping[int, str | None]) -> dict[int, str]:
    """Return a message for each round whose per-client table is damaged or missing, by round.

    Args:
        run_path: the run folder.
        digest_by_step: digest of each round's file, which the journal has. It is None if the round has no table or an
            older version wrote it. Such a file may be missing, but must be readable if it exists.

    Raises:
        DamagedFile: `clients.parquet` is damaged. Its rounds are not checked one by one.
    """
    damage_by_step = {}
    merged_steps = (
        set(list_steps_in_table(run_path / CLIENT_TABLE_FILE)) if is_file(run_path / CLIENT_TABLE_FILE) else set[int]()
    )
    for step, checksum in digest_by_step.items():
        if step not in merged_steps and (checksum is not None or is_file(path_of_step(run_path, step))):
            try:
                open_verified_table(path_of_step(run_path, step), checksum)
            except DamagedFile as error:
                damage_by_step[step] = str(error)
    return damage_by_step


def step_of_file(path: Path) -> int:
    """Return the round of the file `path` of the per-client table; -1 for `clients.parquet`, which has all rounds."""
    return -1 if path.name == CLIENT_TABLE_FILE else int(path.stem)


def list_steps_in_table(table_path: Path) -> list[int]:
    """Return the rounds whose rows the file `table_path` holds; raise `DamagedFile` if it can't be read."""
    if table_path.name != CLIENT_TABLE_FILE:
        return [step_of_file(table_path)]
    with name_file_in_errors(table_path):
        steps: list[int] = json.loads(open_verified_table(table_path).schema_arrow.metadata[STEPS_METADATA_KEY])
    return steps


def list_table_files(run_path: Path, steps: Collection[int], digest_by_step: Mapping[int, str]) -> list[Path]:
    """Return the files that hold the rows of some rounds: `clients.parquet`, then files of rounds that it lacks.

    Args:
        run_path: the run folder.
        steps: the rounds.
        digest_by_step: digest of each round's file in the journal. These files are listed even if they are missing.

    Raises:
        DamagedFile: `clients.parquet` is damaged.
    """
    table_files = [run_path / CLIENT_TABLE_FILE] if is_file(run_path / CLIENT_TABLE_FILE) else []
    merged_steps = {step for path in table_files for step in list_steps_in_table(path)}
    step_files = [path for path in (run_path / STEP_FILES_FOLDER).glob("*.parquet") if re.fullmatch(r"\d+", path.stem)]
    recorded_steps = {step_of_file(path) for path in step_files} | set(digest_by_step)
    return table_files + [path_of_step(run_path, step) for step in sorted((recorded_steps & set(steps)) - merged_steps)]


def open_verified_table(path: Path, checksum: str | None = None) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a file of the per-client table as a `pq.ParquetFile` whose content has been checked.

    Args:
        path: the file. `clients.parquet` is checked by the folder's manifest, if there is one.
        checksum: digest of a round's file, which the journal has; not used for `clients.parquet`. If it is None, the
            file is read, which checks the checksums of its pages.

    Raises:
        DamagedFile: the file is missing or damaged, or has rows of another round.
    """
    if path.name == CLIENT_TABLE_FILE:
        manifest.check_file(path)
    elif not is_file(path):
        raise DamagedFile(f"{path}, the per-client table of round {step_of_file(path)}, is missing. {TABLE_REMEDY}")
    elif checksum is not None and digest.digest_of_file(path) != checksum:
        raise DamagedFile(
            f"{path}, the per-client table of round {step_of_file(path)}, is not what was written. {TABLE_REMEDY}"
        )
    with name_file_in_errors(path):
        table = parquet.open_file(path)
        is_unverified = checksum is None and path.name != CLIENT_TABLE_FILE
        if is_unverified and set(table.read()["step"].to_pylist()) - {step_of_file(path)}:
            raise ValueError("it has rows of another round")
    return table


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Return a context manager that raises errors of reading as `DamagedFile`, which names the file `path`."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise DamagedFile(
            f"{path} is damaged: it cannot be read ({str(error).splitlines()[0]}). {TABLE_REMEDY}"
        ) from error
