"""Data that are passed as `dataset=`: a data frame or NumPy arrays, written as a table that `dataset=folder` reads."""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import ranges
from fedcohort.record.folder import write_atomically

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "tables"  # in paths.logs
LABEL = "label"
TEST_SHARE = 0.2  # of the rows, where `dataset.test_share` is not passed


def replace_data(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with `dataset=folder` for data that are passed, and write these into `paths.logs`.

    The table's folder is named after its content, so that equal data are written once and a run can be resumed.

    Args:
        options: `dataset` may be a data frame, whose columns `dataset.label`, `dataset.client` and so on name, or a
            pair of arrays: samples [n, ...] and labels [n]. An index with a name counts as a column.

    Raises:
        OptionError: for data of another kind.
    """
    data: Any = options.get("dataset")
    frame, described = data, dict[str, Any]()
    if isinstance(data, tuple | list) and len(data) == 2 and not all(isinstance(part, str) for part in data):
        frame, described = _tabulate(*data)
    elif isinstance(data, str | Mapping | tuple | list | None):
        return dict(options)
    elif not hasattr(data, "to_parquet"):
        allowed = "the name of a choice, a data frame, or a pair (x, y) of samples [n, ...] and labels [n]"
        raise ranges.range_error("dataset", allowed, type(data).__name__)
    elif any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    logs = options.get("paths.logs", dict(options.get("paths", {})).get("logs", "logs"))
    folder = Path(logs).absolute() / FOLDER / hashlib.blake2b(content.getbuffer(), digest_size=6).hexdigest()
    if not (folder / "train.parquet").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "train.parquet", content.getbuffer())
    replaced = {"dataset": "folder", "dataset.path": folder, "dataset.test_share": TEST_SHARE, **described}
    return {**replaced, **{name: value for name, value in options.items() if name != "dataset"}}


def _tabulate(x: Any, y: Any) -> "tuple[pd.DataFrame, dict[str, Any]]":  # noqa: ANN401 - what a user passes
    """Return samples and labels as a frame, and the options that describe it. Raises `OptionError`."""
    import pandas as pd

    x, y = np.asarray(x), np.asarray(y)
    if x.ndim < 2 or y.shape != x.shape[:1] or not len(y):
        raise ranges.range_error(
            "dataset", "samples [n, ...] and labels [n], as (x, y)", f"shapes {x.shape}, {y.shape}"
        )
    if x.ndim == 2:
        return pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])]).assign(label=y), {}
    frame = pd.DataFrame({"x": list(x.reshape(len(x), -1)), LABEL: y})
    return frame, {"dataset.features": "x", "dataset.shape": list(x.shape[1:])}
