"""The results of a study: `results.parquet`, one row a run, and `curves.parquet`, one row an evaluated round.

Both are written whole after every run, curves first, and kept sorted. Equal results are equal files, except for the
columns `wall_s` and `when`. `result_files.py` reads and writes them.
"""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.errors import DataError
from fedcohort.record import manifest
from fedcohort.results.compare_cost import find_target_value
from fedcohort.results.frame import list_evaluations, read_clock_limit
from fedcohort.results.run import Evaluations
from fedcohort.study import result_files
from fedcohort.study.definition import METHOD, ORACLE, STUDY_FILE, RunKey, Study
from fedcohort.study.measure import CURVE_COSTS, make_row
from fedcohort.study.result_files import COLUMN_TYPES, CURVE_COLUMNS, CURVES_FILE, DONE, KEY_COLUMNS, RESULTS_FILE, Row

log = logging.getLogger("fedcohort")
# columns that identify a run, which may be the result of several rows
RUN_IDENTITY_COLUMNS = ("seed", "config_hash", "budget", "when")
EMPTY_VALUE_BY_TYPE = {"string": "", "float64": math.nan, "int64": 0, "bool": False}
EMPTY_RESULT_ROW: Row = {name: EMPTY_VALUE_BY_TYPE[kind] for name, kind in COLUMN_TYPES.items()}


@dataclass
class Results:
    """The results in a study's folder. A key of a run is its setting, method and seed.

    Attributes:
        folder: folder of the study.
        rows: the rows by key. A run that was refused or failed has a row with the reason.
        curves: curves of the runs that are done, by key.
        changed: keys of done runs whose present configuration is another one (`StudyRunner.mark_changed_runs`).
        user_folder: folder of the rows of a user's own methods; None if they are in the study's folder.
        user_run_keys: keys of the runs that are kept in `user_folder`.
    """

    folder: Path
    rows: dict[RunKey, Row] = field(default_factory=dict)
    curves: dict[RunKey, Evaluations] = field(default_factory=dict)
    changed: frozenset[RunKey] = frozenset()
    user_folder: Path | None = None
    user_run_keys: set[RunKey] = field(default_factory=set)

    def store_run(self, row: Row, curve: Evaluations | None, *, is_user_method: bool = False) -> None:
        """Store the outcome of a run in place of an earlier one, in memory.

        Args:
            row: columns of `results.parquet`.
            curve: evaluations of the run; None if it was refused or failed.
            is_user_method: whether a user added its method.
        """
        run_key = (row["cell"], row["selector"], row["seed"])
        self.rows[run_key] = EMPTY_RESULT_ROW | row
        if is_user_method and self.user_folder is not None:
            self.user_run_keys.add(run_key)
        self.curves.pop(run_key, None)
        if curve is not None:
            self.curves[run_key] = curve

    def done_runs(self) -> Iterator[tuple[RunKey, Row]]:
        """Yield key and row of the runs that are done and not marked as changed."""
        yield from ((key, row) for key, row in self.rows.items() if row["status"] == DONE and key not in self.changed)

    def measure_setting(self, study: Study, setting: str, new_run_key: RunKey | None = None) -> None:
        """Compute the columns that follow from the curves of a setting, by the study's rules.

        Args:
            study: the study, which has the rules.
            setting: name of the setting.
            new_run_key: key of the only run that has changed, which may change the target of the others; None for all.
        """
        options, setting_definition = study.comparison_options, study.settings.get(setting)
        target, target_value = setting_definition.target if setting_definition else None, math.nan
        run_keys = [key for key in self.curves if key[0] == setting and key in self.rows]
        if new_run_key is not None and (target is None or target.value is not None):
            run_keys = [key for key in run_keys if key == new_run_key]
        clock_limits = {key: read_clock_limit(self.rows[key]["budget"]) for key in run_keys}
        curves = {key: self.curves[key].cut_at_horizon(options.horizon, clock_limits[key]) for key in run_keys}
        if target is not None:
            baseline_runs = [run for key, run in curves.items() if key[1] == study.baseline and key not in self.changed]
            target_value = find_target_value(baseline_runs, options, target)
        for key, run in curves.items():
            self.rows[key] |= make_row(run, options, target, target_value)

    def save_files(self, changed_run_keys: Iterable[RunKey] | None = None) -> None:
        """Write the result files of the study, of user's methods, or of both, in which rows have changed.

        After an interruption each file has either its old or its new content.

        Args:
            changed_run_keys: keys of the runs whose rows have changed; None for all.
        """
        changed_keys = set(self.rows if changed_run_keys is None else changed_run_keys)
        if self.user_folder is not None and changed_keys & self.user_run_keys:
            self._write_result_files(self.user_folder, sorted(self.user_run_keys))
        if changed_keys - self.user_run_keys:
            self._write_result_files(self.folder, sorted(self.rows.keys() - self.user_run_keys))

    def _write_result_files(self, folder: Path, run_keys: Sequence[RunKey]) -> None:
        import pandas as pd
        import pyarrow as pa

        def make_schema(dtypes: Mapping[str, str]) -> Any:  # noqa: ANN401 - pyarrow has no types
            return pa.schema([pa.field(name, pa.type_for_alias(column_type)) for name, column_type in dtypes.items()])

        curves = {run_key: self.curves[run_key] for run_key in run_keys if run_key in self.curves}
        curve_indices = np.repeat(np.arange(len(curves)), [len(curve.steps) for curve in curves.values()])
        curve_parts = [{"step": curve.steps, "value": curve.values, **curve.costs} for curve in curves.values()]
        curve_frame = pd.DataFrame([*curves], columns=[*KEY_COLUMNS]).iloc[curve_indices]
        curve_frame = curve_frame.assign(
            **{name: np.concatenate([np.empty(0), *(part[name] for part in curve_parts)]) for name in CURVE_COLUMNS}
        )
        table = pa.Table.from_pandas(curve_frame, make_schema({**KEY_COLUMNS, **CURVE_COLUMNS}), preserve_index=False)
        run_table = pa.Table.from_pylist([self.rows[run_key] for run_key in run_keys], schema=make_schema(COLUMN_TYPES))
        folder.mkdir(parents=True, exist_ok=True)
        result_files.write_result_files(folder, run_table, table.replace_schema_metadata())


def load_results(study: Study, user_folder: Path | None = None) -> Results:
    """Read the results of a study. Columns that follow from curves are computed again by the study's present rules.

    Done rows without a curve, and refused or failed rows of another metric, are left out.

    Args:
        study: the study's definition.
        user_folder: folder of the rows of a user's own methods, which are added; None if the study's folder has them.

    Raises:
        DataError: for a damaged file, and for done rows of another metric, which the next run would delete.
    """
    results = Results(study.folder, user_folder=user_folder)
    if user_folder is not None:
        _read_result_files(study, user_folder, results)
        results.user_run_keys = set(results.rows)
    _read_result_files(study, study.folder, results)
    for setting in {setting for setting, _, _ in results.curves}:
        results.measure_setting(study, setting)
    return results


def _read_result_files(study: Study, folder: Path, results: Results) -> None:
    """Read the result files in `folder` and add the runs to `results`.

    `study` has the metric. Raises `DataError` for a damaged file, and for done rows of another metric.
    """
    if not result_files.has_study_results(folder):
        return
    curve_frame = result_files.read_curves(folder).rename(columns={"step": "round"})
    columns = {name: curve_frame[name].to_numpy() for name in ("round", "value", *CURVE_COSTS)}
    results.curves |= {
        (setting, selector, int(seed)): list_evaluations(
            {name: column[rows] for name, column in columns.items()}, "value", CURVE_COSTS
        )
        for (setting, selector, seed), rows in curve_frame.groupby([*KEY_COLUMNS], sort=False).indices.items()
    }
    for row in result_files.read_run_rows(folder):
        run_key = (row["cell"], row["selector"], row["seed"])
        if row["metric"] != study.metric:
            if row["status"] != DONE:
                continue
            raise DataError(
                f"{folder / RESULTS_FILE} has runs of the metric {row['metric']}, and {STUDY_FILE} asks for "
                f"{study.metric}: restore the metric, make another study folder for {study.metric}, or remove "
                f"{RESULTS_FILE}, {CURVES_FILE} and {manifest.MANIFEST_FILE}"
            )
        if row["status"] == DONE and run_key not in results.curves:
            log.warning(
                "%s has no evaluations of the run %s %s seed %d: the next `fedcohort study run` repeats it",
                folder / CURVES_FILE,
                *run_key,
            )
            continue
        results.rows[run_key] = EMPTY_RESULT_ROW | row


def drop_repeated_runs(run_rows: Iterable[Row]) -> list[Row]:
    """Return one row for each distinct run. A run has several rows if it is, for instance, a bound and a baseline."""
    return list({tuple(row[column] for column in RUN_IDENTITY_COLUMNS): row for row in run_rows}.values())


def list_federations(study: Study, results: Results) -> dict[str, str]:
    """Return a text that identifies federation and horizon, for each setting of `study` with done runs of the baseline.

    `results` are the study's stored results.
    """
    runs = {key[0]: row for key, row in results.done_runs() if key[1] == study.baseline and key[0] in study.settings}
    return {setting: f"{row['config_hash']} {row['budget']}" for setting, row in runs.items()}


def mark_oracle_methods(study: Study, results: Results) -> Study:
    """Return `study` with the role ORACLE for each method whose runs read values that no server can know.

    `results` are the study's stored results.
    """
    oracles = {key[1] for key, row in results.done_runs() if row["yardstick"] and study.find_role(key[1]) == METHOD}
    return replace(study, role_by_method={**study.role_by_method, **dict.fromkeys(oracles, ORACLE)})
