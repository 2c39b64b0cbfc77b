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

STEP_FOLDER = "clients"  # folder of the files of single steps
TABLE_FILE = "clients.parquet"
STEPS_KEY = b"fedcohort.steps"  # key of the schema's metadata: the steps of the file
REMEDY = "Restore it from a copy, or start the run again with resume=false"


def step_file(folder: Path, step: int) -> Path:
    """Return the path of the per-client table of the round `step` in `folder`, while the run has not finished."""
    return folder / STEP_FOLDER / f"{step:06d}.parquet"


def find_damaged_steps(folder: Path, digests: Mapping[int, str | None]) -> dict[int, str]:
    """Return a message for each round whose per-client table is damaged or missing, by round.

    Args:
        folder: the run folder.
        digests: digest of each round's file, which the journal has. It is None if the round has no table or an older
            version wrote it. Such a file may be missing, but must be readable if it exists.

    Raises:
        DamagedFile: `clients.parquet` is damaged. Its rounds are not checked one by one.
    """
    damage_by_step = {}
    merged_steps = set(list_steps(folder / TABLE_FILE)) if is_file(folder / TABLE_FILE) else set[int]()
    for step, checksum in digests.items():
        if step not in merged_steps and (checksum is not None or is_file(step_file(folder, step))):
            try:
                open_verified_table(step_file(folder, step), checksum)
            except DamagedFile as error:
                damage_by_step[step] = str(error)
    return damage_by_step


def file_step(path: Path) -> int:
    """Return the round of the file `path` of the per-client table; -1 for `clients.parquet`, which has all rounds."""
    return -1 if path.name == TABLE_FILE else int(path.stem)


def list_steps(table_path: Path) -> list[int]:
    """Return the rounds whose rows the file `table_path` of the per-client table holds. Raises `DamagedFile`."""
    if table_path.name != TABLE_FILE:
        return [file_step(table_path)]
    with name_file_in_errors(table_path):
        steps: list[int] = json.loads(open_verified_table(table_path).schema_arrow.metadata[STEPS_KEY])
    return steps


def list_table_files(folder: Path, steps: Collection[int], digests: Mapping[int, str]) -> list[Path]:
    """Return the files that hold the rows of some rounds: `clients.parquet`, then files of rounds that it lacks.

    Args:
        folder: the run folder.
        steps: the rounds.
        digests: digest of each round's file in the journal. These files are listed even if they are missing.

    Raises:
        DamagedFile: `clients.parquet` is damaged.
    """
    table_files = [folder / TABLE_FILE] if is_file(folder / TABLE_FILE) else []
    merged_steps = {step for path in table_files for step in list_steps(path)}
    step_files = [path for path in (folder / STEP_FOLDER).glob("*.parquet") if re.fullmatch(r"\d+", path.stem)]
    recorded_steps = {file_step(path) for path in step_files} | set(digests)
    return table_files + [step_file(folder, step) for step in sorted((recorded_steps & set(steps)) - merged_steps)]


def open_verified_table(path: Path, checksum: str | None = None) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a file of the per-client table as a `pq.ParquetFile` whose content has been checked.

    Args:
        path: the file. `clients.parquet` is checked by the folder's manifest, if there is one.
        checksum: digest of a round's file, which the journal has; not used for `clients.parquet`. If it is None, the
            file is read, which checks the checksums of its pages.

    Raises:
        DamagedFile: the file is missing or damaged, or has rows of another round.
    """
    if path.name == TABLE_FILE:
        manifest.check_file(path)
    elif not is_file(path):
        raise DamagedFile(f"{path}, the per-client table of round {file_step(path)}, is missing. {REMEDY}")
    elif checksum is not None and digest.digest_of_file(path) != checksum:
        raise DamagedFile(f"{path}, the per-client table of round {file_step(path)}, is not what was written. {REMEDY}")
    with name_file_in_errors(path):
        table = parquet.open_file(path)
        if checksum is None and path.name != TABLE_FILE and set(table.read()["step"].to_pylist()) - {file_step(path)}:
            raise ValueError("it has rows of another round")
    return table


@contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Return a context manager that raises errors of reading as `DamagedFile`, which names the file `path`."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise DamagedFile(f"{path} is damaged: it cannot be read ({str(error).splitlines()[0]}). {REMEDY}") from error
