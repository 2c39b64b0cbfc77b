"""`info.json`: the RunInfo of a folder, so that figures can be redrawn and rounds sent without the process that ran.

Its arrays, which are as long as the population, are in `info.npz` beside it: whole numbers as int32
where it holds them, and `info.json` says what they are. It also keeps when each process of the run started: the wall
time of a resumed run leaves out the gaps between them.
"""

import dataclasses
import io
import json
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import CheckpointError, DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest
from fedcohort.record.folder import check_kinds
from fedcohort.record.observer import RunInfo

NAME, ARRAYS = "info.json", "info.npz"
CURE = "Restore it from a copy; before resume=true it may be removed, and is written again"


def save(info: RunInfo) -> None:
    """Write `info.json`, adding one process to those that it knows of."""
    path = info.folder / NAME
    before = starts_ms(info.folder) if path.exists() else []
    _write(info, [*before, time.time_ns() // 1_000_000])


def correct(info: RunInfo) -> None:
    """Write `info.json` again where no process has started. Raises `CheckpointError` where none ever has."""
    _write(info, starts_ms(info.folder))


def _write(info: RunInfo, starts: list[int]) -> None:
    """Write the card, its arrays first: an `info.json` that is there has all of them beside it."""
    values = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **{name: _narrow(value) for name, value in arrays.items()})
    facts = {name: _encode(value) for name, value in values.items()}
    del facts["folder"]  # a folder may be copied to another machine
    text = digest.seal(json.dumps({"starts_ms": starts, "info": facts}, default=str)) + "\n"
    manifest.replace(info.folder, {ARRAYS: packed.getbuffer(), NAME: text.encode()})


def _narrow(values: np.ndarray) -> np.ndarray:
    """Return whole numbers as int32 where it holds them all, else as they are: sums of smaller types would overflow."""
    bounds = np.iinfo(np.int32)
    if values.dtype.kind not in "iu" or not values.size or values.min() < bounds.min or values.max() > bounds.max:
        return values
    return values.astype(np.int32)


def load(folder: Path) -> RunInfo:
    """The RunInfo of the newest process that ran in `folder`. Raises `CheckpointError` where there is no whole one."""
    facts = _read(folder)["info"]
    fields = {field.name for field in dataclasses.fields(RunInfo)}
    known = {name: value for name, value in facts.items() if name in fields}
    inside = {name: np.asarray(v["array"], v["dtype"]) for name, v in known.items() if _is(v, {"dtype", "array"})}
    beside = {name: value["dtype"] for name, value in known.items() if _is(value, {"dtype"})}
    arrays = {**inside, **(_arrays(folder, beside) if beside else {})}
    try:
        return RunInfo(folder=folder, **{**known, **arrays})
    except TypeError as error:
        raise DamagedFile(f"{folder / NAME} is damaged: it lacks facts of a run ({error}). {CURE}") from error


def _arrays(folder: Path, dtypes: dict[str, str]) -> dict[str, np.ndarray]:
    path = folder / ARRAYS
    manifest.check(path)
    if not is_file(path):
        raise CheckpointError(f"{folder} was copied in part: it holds no {ARRAYS}, where {NAME} has arrays")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name].astype(dtype, copy=False) for name, dtype in dtypes.items()}
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        TypeError,
        NotImplementedError,
        zlib.error,
        zipfile.BadZipFile,
    ) as error:
        raise DamagedFile(f"{path} is damaged: it is no archive of the arrays of {NAME} ({error}). {CURE}") from error


def tags(folder: Path) -> dict[str, str]:
    """Return the tags of the newest process that ran in `folder`, as `RunInfo` has them."""
    found: dict[str, str] = _read(folder)["info"].get("tags", {})
    return found


def starts_ms(folder: Path) -> list[int]:
    """When each process of the run started, milliseconds since 1970."""
    starts: list[int] = _read(folder)["starts_ms"]
    return starts


def _read(folder: Path) -> dict[str, Any]:
    path = folder / NAME
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not the folder of a run")
    check_kinds(folder)
    manifest.check(path)
    if not path.exists():
        raise CheckpointError(f"{folder} is not the folder of a run: it holds no {NAME}")
    try:
        text = path.read_text()
        card: dict[str, Any] = json.loads(text)
        if digest.unseal(text)[1] is False:
            raise ValueError("it has another digest than was written")
        whole = isinstance(card["info"], dict) and isinstance(card["starts_ms"], list)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(f"{path} is damaged: it is no JSON of a run ({error}). {CURE}") from error
    if not whole:
        raise DamagedFile(f"{path} is damaged: it is no JSON of a run. {CURE}")
    return card


def _encode(value: object) -> object:
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype)}
    if isinstance(value, list | tuple):
        return list(value)
    return value if isinstance(value, str | int | float | None) else _plain(value)


def _plain(value: object) -> object:
    return dict(value) if hasattr(value, "items") else str(value)  # type: ignore[call-overload]


def _is(value: object, keys: set[str]) -> bool:
    """Whether the value stands for an array.

    It holds `dtype` alone where the array is in `info.npz`, with `array` in the `info.json` of an older fedcohort.
    """
    return isinstance(value, dict) and value.keys() == keys
