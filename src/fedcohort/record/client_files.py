"""The files of a run's per-client table: one a step while the run is at work, one for all steps when it has finished.

Each is read only when it is what was written: a step's own file by its digest in the journal, `clients.parquet` by the
manifest. In the files of older versions, pyarrow must be able to read every page.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedcohort.errors import DamagedFile
from fedcohort.host import disk, parquet
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest

PARTS = "clients"
WHOLE = "clients.parquet"
STEPS = b"fedcohort.steps"
CURE = "Restore it from a copy, or start the run again with resume=false"


def part_of(folder: Path, step: int) -> Path:
    """Return the file of one step of a run that has not finished."""
    return folder / PARTS / f"{step:06d}.parquet"


def find_damage(folder: Path, digests: Mapping[int, str | None]) -> dict[int, str]:
    """Find the steps whose rows are damaged or missing; return what is wrong with each.

    digests: by step, as the journal has them; None where it has none: a file of an older version must be readable.
    """
    found = {}
    whole = set(steps_of(folder / WHOLE)) if is_file(folder / WHOLE) else set[int]()
    for step, wanted in digests.items():
        if step not in whole and (wanted is not None or is_file(part_of(folder, step))):
            try:
                open_checked(part_of(folder, step), wanted)
            except DamagedFile as error:
                found[step] = str(error)
    return found


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, see it to the disk, and rename it: it is old or new, never half."""
    with disk.replacing(path) as draft:
        write(draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())


def step_of(path: Path) -> int:
    """Return the step of a step's own file, -1 for `clients.parquet`."""
    return -1 if path.name == WHOLE else int(path.stem)


def steps_of(path: Path) -> list[int]:
    if path.name != WHOLE:
        return [step_of(path)]
    with naming(path):
        steps: list[int] = json.loads(open_checked(path).schema_arrow.metadata[STEPS])
    return steps


def sources(folder: Path, steps: Collection[int], digests: Mapping[int, str]) -> list[Path]:
    """Return the files that hold `steps`: the whole one first, then the parts that it lacks."""
    whole = [folder / WHOLE] if is_file(folder / WHOLE) else []
    done = {step for path in whole for step in steps_of(path)}
    parts = [path for path in (folder / PARTS).glob("*.parquet") if re.fullmatch(r"\d+", path.stem)]
    wanted = {step_of(path) for path in parts} | set(digests)
    return whole + [part_of(folder, step) for step in sorted((wanted & set(steps)) - done)]


def open_checked(path: Path, wanted: str | None = None) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Open a file that is what was written: by its digest, by the manifest, or where it has neither by its pages."""
    if path.name == WHOLE:
        manifest.check(path)
    elif not is_file(path):
        raise DamagedFile(f"{path}, the per-client table of round {step_of(path)}, is missing. {CURE}")
    elif wanted is not None and digest.of_file(path) != wanted:
        raise DamagedFile(f"{path}, the per-client table of round {step_of(path)}, is not what was written. {CURE}")
    with naming(path):
        file = parquet.open_file(path)
        if wanted is None and path.name != WHOLE and set(file.read()["step"].to_pylist()) - {step_of(path)}:
            raise ValueError("it has rows of another round")
    return file


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file's name before what pyarrow says of it."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise DamagedFile(f"{path} is damaged: it can't be read ({str(error).splitlines()[0]}). {CURE}") from error
