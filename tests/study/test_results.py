"""The files of a study's results come back as they were written, or say what is wrong with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from fedcohort.errors import DataError
from fedcohort.record import manifest
from fedcohort.study import report
from fedcohort.study.result_files import CURVES_FILE, RESULTS_FILE
from fedcohort.study.results import load_results
from study.small_study import make_results, write_study
from study.test_judge import LATE_MEANS, METHODS


def test_results_come_back_as_they_were_written(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    results = make_results(study, LATE_MEANS)
    results.save_files()
    first = (tmp_path / RESULTS_FILE).read_bytes(), (tmp_path / CURVES_FILE).read_bytes()
    repeat = load_results(study)
    assert list(repeat.rows) == sorted(results.rows)
    assert repeat.rows["equal", "flash", 1]["late"] == pytest.approx(0.84)
    repeat.save_files()
    assert (tmp_path / CURVES_FILE).read_bytes() == first[1]
    report.write_study_report(study, load_results(study))  # from the files as from the runs


def test_results_come_back_to_the_bit(tmp_path: Path) -> None:
    """Curves were kept in single precision: a resumed study's results differed in the eighth digit."""
    study = write_study(tmp_path, **METHODS)
    late_means = {"equal": {"random": [1 / 3, 2 / 7], "flash": [0.1 + 0.2, 5 / 9]}}
    results = make_results(study, late_means)
    for key, curve in results.curves.items():
        seconds, n_bytes = curve.costs.values()
        results.curves[key] = replace(curve, costs={"virtual_s": seconds * (1 + 1e-12), "bytes": n_bytes + 1e-3})
    results.measure_setting(study, "equal")
    results.save_files()
    repeat = load_results(study)
    for key, row in results.rows.items():
        np.testing.assert_equal(repeat.rows[key], row)
        np.testing.assert_equal(vars(repeat.curves[key]), vars(results.curves[key]))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    make_results(study, LATE_MEANS).save_files()
    (tmp_path / RESULTS_FILE).write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"results\.parquet is damaged: its content differs from manifest\.json"):
        load_results(study)
    manifest.remove_manifest(tmp_path)
    with pytest.raises(DataError, match=r"results\.parquet is damaged: it can't be read"):
        load_results(study)


def test_results_of_another_metric_are_kept(tmp_path: Path) -> None:
    """They were left out, and the next run that was written down deleted them."""
    make_results(write_study(tmp_path, **METHODS), LATE_MEANS).save_files()
    original = (tmp_path / RESULTS_FILE).read_bytes()
    expected = (
        r"results\.parquet has runs of the metric test/acc, and study\.yaml asks for test/acc_worst: restore "
        r"the metric, make another study folder for test/acc_worst, or remove results\.parquet, curves\.parquet and "
    )
    with pytest.raises(DataError, match=expected):
        load_results(write_study(tmp_path, metric="test/acc_worst", **METHODS))
    assert (tmp_path / RESULTS_FILE).read_bytes() == original


def test_runs_rejected_for_another_metric_are_tried_again(tmp_path: Path) -> None:
    study = write_study(tmp_path, metric="test/acc_wrst", **METHODS)
    results = make_results(study, {})
    facts = {"cell": "equal", "selector": "random", "seed": 0, "status": "refused", "metric": study.metric}
    results.store_run({**facts, "reason": "metric must be one of test/acc, got 'test/acc_wrst'"}, None)
    results.save_files()
    assert list(load_results(study).rows) == [("equal", "random", 0)]
    assert not load_results(write_study(tmp_path, **METHODS)).rows


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    study = write_study(tmp_path, **METHODS)
    make_results(study, LATE_MEANS).save_files()
    table = parquet.read_table(tmp_path / RESULTS_FILE)
    parquet.write_table(table.drop_columns("status"), tmp_path / RESULTS_FILE)
    manifest.remove_manifest(tmp_path)
    with pytest.raises(DataError, match=r"results\.parquet is damaged: it has no column status"):
        load_results(study)
