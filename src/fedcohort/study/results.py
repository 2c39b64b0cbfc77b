"""What a study has come to: `results.parquet`, a row a run, and `curves.parquet`, a row for each round evaluated.

Both are written whole after every run, curves first, and kept sorted, so that equal results are equal files but for
`wall_s` and `when`. `study/tables.py` reads and writes them.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import DataError
from fedcohort.record import manifest
from fedcohort.study import tables
from fedcohort.study.definition import METHOD, NAME, YARDSTICK, Study
from fedcohort.study.measure import Trajectory, summarise
from fedcohort.study.places import clock_of
from fedcohort.study.tables import AXES, COLUMNS, CURVES, DONE, FAILED, KEY, NUMBERS, REFUSED, RESULTS, TEXTS

__all__ = ["CURVES", "DONE", "FAILED", "REFUSED", "RESULTS", "Results", "load"]
log = logging.getLogger("fedcohort")
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
        own_folder: of the rows of the user's own methods; None for the study's folder.
        own: the keys of these rows.
    """

    folder: Path
    rows: dict[Key, Row] = field(default_factory=dict)
    curves: dict[Key, Trajectory] = field(default_factory=dict)
    changed: frozenset[Key] = frozenset()
    own_folder: Path | None = None
    own: set[Key] = field(default_factory=set)

    def put(self, row: Row, curve: Trajectory | None, *, own: bool = False) -> None:
        """Keep what became of a run, instead of what was known before. own: whether its method is the user's own."""
        key = (row["cell"], row["selector"], row["seed"])
        self.rows[key] = {**_empty(), **row}
        if own and self.own_folder is not None:
            self.own.add(key)
        self.curves.pop(key, None)
        if curve is not None:
            self.curves[key] = curve

    def done(self) -> Iterator[tuple[Key, Row]]:
        """Yield the runs that are done, in their present config as far as that is known."""
        yield from ((key, row) for key, row in self.rows.items() if row["status"] == DONE and key not in self.changed)

    def save(self) -> None:
        """Write both files, all of each or what was there before; those of the user's own rows to their folder."""
        if self.own and self.own_folder is not None:
            self._write(self.own_folder, sorted(self.own))
        if (keys := sorted(self.rows.keys() - self.own)) or tables.exist(self.folder):
            self._write(self.folder, keys)

    def _write(self, folder: Path, keys: Sequence[Key]) -> None:
        import pyarrow as pa

        known = [key for key in keys if key in self.curves]
        lengths = [len(self.curves[key].steps) for key in known]
        labels = {
            name: pa.array(
                np.repeat(np.array([key[place] for key in known], dtype=kind), lengths),
                type=pa.type_for_alias(KEY[name]),
            )
            for place, (name, kind) in enumerate((("cell", object), ("selector", object), ("seed", np.int64)))
        }
        axes = {"step": "steps", "value": "value", "virtual_s": "virtual_s", "bytes": "bytes"}
        values = {
            name: np.concatenate([np.empty(0), *(getattr(self.curves[key], axes[name]) for key in known)]).astype(kind)
            for name, kind in AXES.items()
        }
        folder.mkdir(parents=True, exist_ok=True)
        fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()]
        rows = pa.Table.from_pylist([self.rows[key] for key in keys], schema=pa.schema(fields))
        tables.write(folder, rows, pa.table({**labels, **values}))


def load(study: Study, own_folder: Path | None = None) -> Results:
    """Read what there is; what follows from curves is of the study's own `late` and targets, whatever they were.

    Done rows whose curve is lost, and refused or failed ones of another metric, are left out. Raises `DataError` for a
    damaged file, and for done rows of another metric, which the next run would delete.

    own_folder: of the rows of the user's own methods, which are merged; None where they are in the study's folder.
    """
    found = Results(study.folder, own_folder=own_folder)
    if own_folder is not None:
        _read(study, own_folder, found)
        found.own = set(found.rows)
    _read(study, study.folder, found)
    return found


def _read(study: Study, folder: Path, found: Results) -> None:
    """Add the results in `folder` to those that were found."""
    if not tables.exist(folder):
        return
    rows = tables.read_rows(folder)
    found.curves |= {
        (str(cell), str(row), int(seed)): Trajectory(*(part[name].to_numpy(dtype=float) for name in AXES))
        for (cell, row, seed), part in tables.read_curves(folder).groupby([*KEY], sort=False)
    }
    for row in rows:
        key = (row["cell"], row["selector"], row["seed"])
        if row["status"] == DONE:
            if row["metric"] != study.metric:
                raise DataError(
                    f"{folder / RESULTS} has runs of the metric {row['metric']}, and {NAME} asks for "
                    f"{study.metric}: put it back, make another study folder for {study.metric}, or remove "
                    f"{RESULTS}, {CURVES} and {manifest.NAME}"
                )
            if key not in found.curves:
                log.warning("%s has no curve of %s %s seed %d: it is run again", folder / CURVES, *key)
                continue
            cell = study.cells.get(row["cell"])
            row |= summarise(
                found.curves[key], study.late, cell.target if cell else None, clock_of(row["words"].split())
            )
        elif row["metric"] != study.metric:
            continue
        found.rows[key] = {**_empty(), **row}


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
