"""Run metadata: `info.json` and `info.npz` store the RunInfo of a run, which figures and MLflow read later.

The arrays, one number or more per client, are in `info.npz`. Integers are stored as int32 if they fit, and `info.json`
has their types. `info.json` also has the start time of each process of the run, because the wall time of a resumed run
leaves out the gaps between processes.
"""

import dataclasses
import io
import json
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fedcohort.errors import CheckpointError, DamagedFile
from fedcohort.host.disk import is_file
from fedcohort.record import digest, manifest
from fedcohort.record.folder import check_file_types
from fedcohort.record.observer import RunInfo

INFO_FILE, ARRAYS_FILE = "info.json", "info.npz"
NPZ_READ_ERRORS = (OSError, EOFError, ValueError, LookupError, TypeError, NotImplementedError, zlib.error, BadZipFile)
METADATA_REMEDY = "Restore it from a copy, or remove it and resume the run, which writes it again"


def save_info(info: RunInfo, *, adds_start_time: bool = True) -> None:
    """Write a run's metadata to `info.json` and `info.npz`.

    The arrays are written first, so that an existing `info.json` always has its arrays.

    Args:
        info: the metadata.
        adds_start_time: whether this process has started the run, and its start time is added.
    """
    start_times = read_start_times(info.folder) if (info.folder / INFO_FILE).exists() else []
    start_times += [time.time_ns() // 1_000_000] if adds_start_time else []
    field_values = {info_field.name: getattr(info, info_field.name) for info_field in dataclasses.fields(info)}
    array_by_field = {n: v for n, v in field_values.items() if isinstance(v, np.ndarray)}
    npz_bytes = io.BytesIO()
    np.savez(npz_bytes, allow_pickle=False, **{n: _shrink_integers(v) for n, v in array_by_field.items()})
    encoded_values = {n: _encode_field(v) for n, v in field_values.items()}
    del encoded_values["folder"]  # a folder may be copied to another machine
    info_text = digest.append_digest(json.dumps({"starts_ms": start_times, "info": encoded_values}, default=str)) + "\n"
    manifest.replace_files(info.folder, {ARRAYS_FILE: npz_bytes.getbuffer(), INFO_FILE: info_text.encode()})


def _shrink_integers(integers: np.ndarray) -> np.ndarray:
    """Return an array of integers as int32 if they fit; other values are unchanged.

    Smaller types are not used, as their sums would overflow.
    """
    int32_limits = np.iinfo(np.int32)
    if (
        integers.dtype.kind not in "iu"
        or not integers.size
        or integers.min() < int32_limits.min
        or integers.max() > int32_limits.max
    ):
        return integers
    return integers.astype(np.int32)


def load_info(folder: Path) -> RunInfo:
    """Return the metadata in the run folder `folder`; raise `CheckpointError` if they are missing or damaged."""
    info_fields = _read_info(folder)["info"]
    info_fields = {
        n: v for n, v in info_fields.items() if n in {info_field.name for info_field in dataclasses.fields(RunInfo)}
    }
    # older versions of fedcohort stored the arrays in info.json
    json_arrays = {
        n: np.asarray(v["array"], v["dtype"]) for n, v in info_fields.items() if _has_keys(v, "dtype", "array")
    }
    dtype_by_array = {n: v["dtype"] for n, v in info_fields.items() if _has_keys(v, "dtype")}
    array_by_field = {**json_arrays, **(_read_npz_arrays(folder, dtype_by_array) if dtype_by_array else {})}
    try:
        return RunInfo(folder=folder, **{**info_fields, **array_by_field})
    except TypeError as error:
        raise DamagedFile(
            f"{folder / INFO_FILE} is damaged: it lacks fields of a run ({error}). {METADATA_REMEDY}"
        ) from error


def _read_npz_arrays(run_path: Path, dtype_by_array: dict[str, str]) -> dict[str, np.ndarray]:
    path = run_path / ARRAYS_FILE
    manifest.check_file(path)
    if not is_file(path):
        raise CheckpointError(
            f"{run_path} was copied in part: it holds no {ARRAYS_FILE}, which {INFO_FILE} refers to. Copy the whole "
            "folder again"
        )
    try:
        with np.load(path, allow_pickle=False) as npz_archive:
            return {n: npz_archive[n].astype(array_dtype, copy=False) for n, array_dtype in dtype_by_array.items()}
    except NPZ_READ_ERRORS as error:
        raise DamagedFile(
            f"{path} is damaged: the arrays of {INFO_FILE} cannot be read ({error}). {METADATA_REMEDY}"
        ) from error


def read_tags(folder: Path) -> dict[str, str]:
    """Return `RunInfo.tags` of the newest process that ran in `folder`."""
    return dict(_read_info(folder)["info"].get("tags", {}))


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the content of `summary.json`, the results of the run in `folder`; {} before its end.

    Raises `DamagedFile` if the file can't be read, or its digest is wrong.
    """
    summary_path = folder / "summary.json"
    manifest.check_file(summary_path)
    return digest.read_json(summary_path, "Restore it from a copy") or {}


def read_start_times(folder: Path) -> list[int]:
    """Return when each process of the run in `folder` started, in milliseconds since 1970."""
    return list(_read_info(folder)["starts_ms"])


def _read_info(run_path: Path) -> dict[str, Any]:
    info_path = run_path / INFO_FILE
    if not os.path.isdir(run_path):  # False for a name that is too long
        raise CheckpointError(f"{run_path} is not the folder of a run: there is no such folder. Name one in logs/runs")
    check_file_types(run_path)
    manifest.check_file(info_path)
    info_document = digest.read_json(info_path, METADATA_REMEDY)
    if info_document is None:
        raise CheckpointError(f"{run_path} is not the folder of a run: it holds no {INFO_FILE}. Name one in logs/runs")
    if not (isinstance(info_document.get("info"), dict) and isinstance(info_document.get("starts_ms"), list)):
        raise DamagedFile(f"{info_path} is damaged: info is no object, or starts_ms no list. {METADATA_REMEDY}")
    return info_document


def _encode_field(field_value: object) -> object:
    """Return the value of a field of `RunInfo` as JSON data; of an array only its dtype, as `info.npz` has the rest."""
    if isinstance(field_value, np.ndarray):
        return {"dtype": str(field_value.dtype)}
    return dict(field_value) if isinstance(field_value, Mapping) else field_value


def _has_keys(field_value: object, *expected_keys: str) -> bool:
    return isinstance(field_value, dict) and field_value.keys() == set(expected_keys)
