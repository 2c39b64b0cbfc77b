"""What a study has come to: `results.parquet`, a row a run, and `curves.parquet`, a row for each round evaluated.

Both are written whole after every run, curves first, and kept sorted, so that equal results are equal files but for
`wall_s` and `when`.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import DataError
from fedcohort.record.folder import write_atomically
from fedcohort.study.definition import METHOD, NAME, YARDSTICK, Study
from fedcohort.study.measure import Trajectory, summarise
from fedcohort.study.places import clock_of

RESULTS, CURVES = "results.parquet", "curves.parquet"
DONE, REFUSED, FAILED = "done", "refused", "failed"
TEXTS: tuple[str, ...] = ("cell", "selector", "status", "reason", "words", "stamp", "config_hash", "budget", "metric")
TEXTS += ("commit", "sources", "versions", "fingerprint", "when", "yardstick", "follows")
TEXTS += ("behaviour", "compared", "differs")  # `behaviour.py`; the commit that was compared last, and what differed
NUMBERS: tuple[str, ...] = (
    "late",
    "last",
    "best",
    "target",
    "rounds_to_target",
    "virtual_s_to_target",
    "bytes_to_target",
)
NUMBERS += ("virtual_s", "bytes", "probe_bytes", "client_flops", "server_flops", "wall_s")
COLUMNS = {**dict.fromkeys(TEXTS, "string"), "seed": "int64", "dirty": "bool", "rounds": "int64"}
COLUMNS |= dict.fromkeys(NUMBERS, "float64")
AXES = {"step": "int32", "value": "float32", "virtual_s": "float32", "bytes": "float32"}
RUN = ("seed", "config_hash", "budget", "when")  # what tells a run from others, in whichever places it is a result
Key = tuple[str, str, int]  # cell, row, seed
Row = dict[str, Any]


@dataclass
class Results:
    """The results in a study's folder.

    Attributes:
        rows: by cell, row and seed; of a run that was refused or has failed, with the reason.
        curves: of those that are done.
        changed: of those that are done, whose config is another one now, where that was asked (`progress.set_apart`).
    """

    folder: Path
    rows: dict[Key, Row] = field(default_factory=dict)
    curves: dict[Key, Trajectory] = field(default_factory=dict)
    changed: frozenset[Key] = frozenset()

    def put(self, row: Row, curve: Trajectory | None) -> None:
        """Keep what became of a run, instead of what was known of it before."""
        key = (row["cell"], row["selector"], row["seed"])
        self.rows[key] = {**_empty(), **row}
        self.curves.pop(key, None)
        if curve is not None:
            self.curves[key] = curve

    def done(self) -> Iterator[tuple[Key, Row]]:
        """Yield the runs that are done, in their present config as far as that is known."""
        yield from ((key, row) for key, row in self.rows.items() if row["status"] == DONE and key not in self.changed)

    def save(self) -> None:
        """Write both files, all of each or what was there before."""
        import pyarrow as pa

        keys = sorted(self.rows)
        known = [key for key in keys if key in self.curves]
        lengths = [len(self.curves[key].steps) for key in known]
        labels = {
            name: pa.array(np.repeat(np.array([key[place] for key in known], dtype=kind), lengths))
            for place, (name, kind) in enumerate((("cell", object), ("selector", object), ("seed", np.int64)))
        }
        axes = {"step": "steps", "value": "value", "virtual_s": "virtual_s", "bytes": "bytes"}
        values = {
            name: np.concatenate([np.empty(0), *(getattr(self.curves[key], axes[name]) for key in known)]).astype(kind)
            for name, kind in AXES.items()
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(CURVES, pa.table({**labels, **values}))
        fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()]
        self._write(RESULTS, pa.Table.from_pylist([self.rows[key] for key in keys], schema=pa.schema(fields)))

    def _write(self, name: str, table: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        from pyarrow import parquet

        packed = io.BytesIO()
        parquet.write_table(table, packed, compression="zstd")
        write_atomically(self.folder / name, packed.getbuffer())


def load(study: Study) -> Results:
    """Read what there is; what follows from curves is of the study's own `late` and targets, whatever they were.

    Done rows whose curve is lost, and refused or failed ones of another metric, are left out. Raises `DataError` for a
    damaged file, and for done rows of another metric, which the next run would delete.
    """
    import pyarrow as pa
    from pyarrow import parquet

    found = Results(study.folder)
    if not (study.folder / RESULTS).exists():
        return found
    try:
        rows = parquet.read_table(study.folder / RESULTS).to_pylist()
        curves = parquet.read_table(study.folder / CURVES).to_pandas()
        found.curves = {
            (str(cell), str(row), int(seed)): Trajectory(*(part[name].to_numpy(dtype=float) for name in AXES))
            for (cell, row, seed), part in curves.groupby(["cell", "selector", "seed"], sort=False)
        }
    except (OSError, pa.ArrowException, KeyError) as error:
        raise DataError(
            f"{study.folder}: {RESULTS} or {CURVES} can't be read ({error}); remove both to begin anew"
        ) from error
    if rows and (lacks := sorted({"cell", "selector", "seed", "status", "metric", "words"} - set(rows[0]))):
        raise DataError(f"{study.folder / RESULTS} has no column {lacks[0]}; remove it and {CURVES} to begin anew")
    for row in rows:
        key = (row["cell"], row["selector"], row["seed"])
        if row["status"] == DONE:
            if row["metric"] != study.metric:
                raise DataError(
                    f"{study.folder / RESULTS} has runs of the metric {row['metric']}, and {NAME} asks for "
                    f"{study.metric}: put it back, make another study folder for {study.metric}, or remove both "
                    f"{RESULTS} and {CURVES}"
                )
            if key not in found.curves:
                continue
            cell = study.cells.get(row["cell"])
            row |= summarise(
                found.curves[key], study.late, cell.target if cell else None, clock_of(row["words"].split())
            )
        elif row["metric"] != study.metric:
            continue
        found.rows[key] = {**_empty(), **row}
    return found


def list_runs(rows: Iterable[Row]) -> list[Row]:
    """List one row of each run: in several places, as a bound is often another regime's baseline, it is one run."""
    return list({tuple(row[name] for name in RUN): row for row in rows}.values())


def federations(study: Study, found: Results) -> dict[str, str]:
    """Return of each regime with runs of the baseline what tells its federation, and how long it runs, from others."""
    runs = {key[0]: row for key, row in found.done() if key[1] == study.baseline and key[0] in study.cells}
    return {cell: f"{run['config_hash']} {run['budget']}" for cell, run in runs.items()}


def with_roles(study: Study, found: Results) -> Study:
    """Return the study where no row that reads what no server can know is a method, whatever it is called."""
    read = {key[1] for key, row in found.done() if row["yardstick"] and study.role_of(key[1]) == METHOD}
    return replace(study, roles={**study.roles, **dict.fromkeys(read, YARDSTICK)})


def _empty() -> Row:
    """Return a row that says nothing."""
    texts, numbers = dict.fromkeys(TEXTS, ""), dict.fromkeys(NUMBERS, float("nan"))
    return {**texts, **numbers, "seed": 0, "dirty": False, "rounds": 0}
