"""The same runs read from folders, from MLflow and from a study's Parquet files give the same table."""
# ruff: noqa: F811

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedcohort.record.journal import Journal
from fedcohort.record.status import RunStatus
from fedcohort.report.comparison import page
from fedcohort.results.compare import Comparison, Options, compare_conditions
from fedcohort.results.frame import RunFrames
from fedcohort.results.matching.question import ComparisonQuestion
from fedcohort.startup.comparison import compare_run_folders, compare_tracked_runs
from fedcohort.tracking.runs import RunQuery
from record.example_run import make_report, make_run_info
from study.committed_frames import read_study
from tracking.databases import EXPERIMENT, Logs, logs  # noqa: F401

ACC = "test/acc"
COLUMNS = ["condition", "seed", "oracle", "virtual_s", "bytes", "client_flops"]


def make_tracked_runs(logs: Logs) -> list[Path]:
    """Two selectors with three seeds, whose accuracies differ."""
    folders = []
    for gain, selector in enumerate(("random", "flash")):
        for seed in range(3):
            folder = logs.path / "runs" / f"{selector}-{seed}"
            facts = make_run_info(folder, choices={"selector": selector}, config={"seed": seed, "rounds": 6}, seed=seed)
            observers = [Journal(), logs.tracker(), RunStatus()]
            for observer in observers:
                observer.start(facts)
            for step in range(7):
                round_report = make_report(step)
                shift = 0.01 * gain * (seed + 1) + 0.003 * seed
                shifted = replace(
                    round_report, metrics={**round_report.metrics, ACC: round_report.metrics[ACC] + shift}
                )
                for observer in observers:
                    observer.observe(shifted)
            for observer in observers:
                observer.finish("finished")
            folders.append(folder)
    return folders


def write_study(frames: RunFrames, folder: Path) -> None:
    """Write the frames as a study's results, with single precision in the curves."""
    folder.mkdir()
    study_columns = {"setting": "cell", "condition": "selector"}
    runs = frames.runs.rename(columns=study_columns).assign(metric=ACC, yardstick="", budget="")
    runs.drop(columns=["run", "folder"]).to_parquet(folder / "results.parquet")
    keys = frames.runs.set_index("run")[["setting", "condition", "seed"]]
    curves = frames.curves.join(keys, on="run").rename(columns={**study_columns, "round": "step", ACC: "value"})
    curves["value"] = curves["value"].astype(np.float32)
    curves[["cell", "selector", "seed", "step", "virtual_s", "bytes", "client_flops", "value"]].to_parquet(
        folder / "curves.parquet"
    )


def by_key(frames: RunFrames) -> pd.DataFrame:
    return frames.runs[COLUMNS].sort_values(["condition", "seed"]).reset_index(drop=True)


def numbers(result: Comparison) -> pd.DataFrame:
    """Every number of a comparison, by condition."""
    rows = {
        condition: (
            e.mean.mean,
            e.mean.half_width,
            *((d.mean, d.low, d.high, e.p) if (d := e.difference) else [0.0] * 4),
        )
        for (_, condition), e in result.results.items()
    }
    return pd.DataFrame(rows).sort_index(axis=1)


def test_folders_mlflow_and_parquet_give_the_same_table(logs: Logs, tmp_path: Path) -> None:
    paths = make_tracked_runs(logs)
    answer = compare_tracked_runs(RunQuery(logs.uri, EXPERIMENT), ComparisonQuestion(baseline="random"))
    by_folder = compare_run_folders(
        paths, ComparisonQuestion(baseline="random", source_text=answer.question.source_text), {}
    )
    assert page.to_markdown(by_folder) == page.to_markdown(answer), "with the same notes"
    folders = by_folder.frames
    flash_comparison = compare_run_folders(paths, ComparisonQuestion(), {"selector": "flash"})
    assert {condition for _, condition in flash_comparison.headline.results} == {"flash"}
    write_study(folders, tmp_path / "study")
    study = read_study(tmp_path / "study")
    pd.testing.assert_frame_equal(by_key(folders), by_key(answer.frames), rtol=1e-6, check_dtype=False)
    pd.testing.assert_frame_equal(by_key(folders), by_key(study), rtol=1e-6, check_dtype=False)
    options = Options(ACC, "random")
    first, *other_answers = (compare_conditions(frames, options) for frames in (folders, answer.frames, study))
    for variant in other_answers:
        pd.testing.assert_frame_equal(numbers(first), numbers(variant), rtol=1e-6)
        assert {c: e.verdict for c, e in first.results.items()} == {c: e.verdict for c, e in variant.results.items()}
    assert first.results["", "flash"].mean.mean == pytest.approx(answer.headline.results["", "flash"].mean.mean)
