"""`info.json`: the RunInfo of a folder, so that figures can be redrawn and rounds sent without the process that ran.

It also keeps when each process of the run started: the wall time of a resumed run leaves out the gaps between them.
"""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import CheckpointError
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import RunInfo

NAME = "info.json"


def save(info: RunInfo) -> None:
    """Write `info.json`, adding one process to those that it knows of."""
    path = info.folder / NAME
    before = starts_ms(info.folder) if path.exists() else []
    _write(info, [*before, time.time_ns() // 1_000_000])


def correct(info: RunInfo) -> None:
    """Write `info.json` again where no process has started. Raises `CheckpointError` where none ever has."""
    _write(info, starts_ms(info.folder))


def _write(info: RunInfo, starts: list[int]) -> None:
    facts = {field.name: _encode(getattr(info, field.name)) for field in dataclasses.fields(info)}
    del facts["folder"]  # a folder may be copied to another machine
    write_atomically(info.folder / NAME, json.dumps({"starts_ms": starts, "info": facts}, default=str) + "\n")


def load(folder: Path) -> RunInfo:
    """The RunInfo of the newest process that ran in `folder`. Raises `CheckpointError` where there is no whole one."""
    facts = _read(folder)["info"]
    known = {field.name for field in dataclasses.fields(RunInfo)}
    return RunInfo(folder=folder, **{name: _decode(value) for name, value in facts.items() if name in known})


def starts_ms(folder: Path) -> list[int]:
    """When each process of the run started, milliseconds since 1970."""
    starts: list[int] = _read(folder)["starts_ms"]
    return starts


def _read(folder: Path) -> dict[str, Any]:
    try:
        card: dict[str, Any] = json.loads((folder / NAME).read_text())
    except FileNotFoundError as error:
        raise CheckpointError(f"{folder} is not the folder of a run: it holds no {NAME}") from error
    except ValueError as error:
        raise CheckpointError(f"{folder / NAME} is damaged: it is no JSON ({error})") from error
    return card


def _encode(value: object) -> object:
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "array": value.tolist()}
    if isinstance(value, list | tuple):
        return list(value)
    return value if isinstance(value, str | int | float | None) else _plain(value)


def _plain(value: object) -> object:
    return dict(value) if hasattr(value, "items") else str(value)  # type: ignore[call-overload]


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"dtype", "array"}:
        return np.asarray(value["array"], dtype=value["dtype"])
    return value
