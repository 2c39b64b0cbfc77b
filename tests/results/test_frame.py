"""The frames: a run read from its folder and from a study's files is the same run."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd

from fedcohort.record import metadata, provenance
from fedcohort.record.journal import Journal
from fedcohort.results.compare import Options, compare_conditions
from fedcohort.results.frame import COST_COLUMNS, METRICS_BY_COST, RunFrames, read_curves
from fedcohort.results.verdict import DIVERGED
from fedcohort.study.measure import measure_run_folder
from fedcohort.study.result_files import DONE
from fedcohort.study.results import Results
from record.example_run import make_report, make_run_info
from study import small_study
from study.committed_frames import read_study


def run_folder(folder: Path) -> Path:
    """Write a run of three rounds, of which the last was not evaluated."""
    journal, run = Journal(), make_run_info(folder, rounds=3)
    journal.start(run)
    for step, value in enumerate((0.5, 0.6, math.nan, None)):
        measured = {} if value is None else {"test/acc": value}
        costs = {"time/virtual_s": 10.0 * step, "comm/down_bytes": 1.0 * step, "comm/up_bytes": 2.0 * step}
        journal.observe(replace(make_report(step), metrics={**measured, **costs, "comp/client_flops": 5.0 * step}))
    metadata.save_info(run)
    provenance.append_start_record(folder, {"commit": "c0ffee", "dirty": False, "sources": "", "versions": {}})
    return folder


def test_a_run_is_equal_from_its_folder_and_from_a_study(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    study = small_study.write_study(tmp_path / "tiny")
    facts, curve = measure_run_folder(folder, "test/acc")
    results = Results(study.folder)
    keys = {"cell": "equal", "selector": "flash", "seed": 0, "status": DONE, "metric": "test/acc"}
    columns = {"config_hash": "a1b2c3d4", "budget": "3 rounds", "wall_s": 1.0}
    results.store_run({**facts, **keys, **columns}, curve)
    results.save_files()
    curves, study_frames = read_curves([folder], ["test/acc"]).replace(math.inf, math.nan), read_study(study.folder)
    row = study_frames.runs.iloc[0]
    for name in ("commit", "dirty", "rounds", *METRICS_BY_COST):
        assert facts[name] == row[name], name
    assert (row["bytes"], row["client_flops"], row["condition"], row["oracle"]) == (9.0, 15.0, "flash", False)
    shared = ["round", *(axis for axis in COST_COLUMNS if axis in study_frames.curves), "test/acc"]
    pd.testing.assert_frame_equal(curves[shared], study_frames.curves[shared], check_dtype=False)
    assert curves["round"].tolist() == [0, 1, 2]  # the diverged evaluation is one, the last round none


def test_curves_are_read_from_folders(tmp_path: Path) -> None:
    assert read_curves([], ["test/acc"]).empty
    unmeasured = read_curves([run_folder(tmp_path / "run")], ["test/loss"])
    assert unmeasured.columns.tolist() == ["run", "round", *COST_COLUMNS]
    assert unmeasured.empty


def test_a_loss_that_becomes_nan_is_not_compared_by_its_last_finite_values(tmp_path: Path) -> None:
    """MLflow stores a NaN, and both sources give infinity: a metric that was not measured in a round is NaN."""
    losses = {"random": [2.3, 1.5, 1.2, 1.0], "bad": [2.3, 0.5, 0.3, math.nan]}
    runs = []
    for name, seed in product(losses, range(3)):
        journal, run = Journal(), make_run_info(tmp_path / f"{name}{seed}", rounds=4)
        journal.start(run)
        for step, loss in enumerate(losses[name]):
            client_metrics = {"clients/acc_mean": 0.5} if step % 2 else {}
            metrics = {"test/loss": loss + 0.01 * seed, **client_metrics}
            journal.observe(replace(make_report(step), metrics=metrics))
        runs.append({"run": str(run.folder), "setting": "", "condition": name, "seed": seed, "oracle": False})
    curves = read_curves(sorted(tmp_path.iterdir()), ["test/loss", "clients/acc_mean"])
    assert curves[curves["run"] == str(tmp_path / "bad0")]["test/loss"].tolist() == [2.3, 0.5, 0.3, math.inf]
    assert curves["clients/acc_mean"].isna().sum() == 12  # not measured in every other round
    entry = compare_conditions(RunFrames(pd.DataFrame(runs), curves), Options("test/loss", "random", -1)).results
    assert entry["", "bad"].verdict == DIVERGED
    assert not math.isfinite(entry["", "bad"].mean.mean)
