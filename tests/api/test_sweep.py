"""`fedcohort.sweep` and `fedcohort.compare`: a sweep from Python, and its comparison without MLflow."""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import fedcohort
from api.test_run import OPTIONS, PressCtrlC, run
from fedcohort.errors import CheckpointError, IncompatibleConfig, OptionError, TrackingError
from fedcohort.record import sweep_folder


def sweep(logs: Path, **options: Any) -> fedcohort.SweepResult:
    return fedcohort.sweep(**{**OPTIONS, "rounds": 2, **options}, paths={"logs": logs})


@pytest.fixture(scope="module")
def sweep_result(tmp_path_factory: pytest.TempPathFactory) -> fedcohort.SweepResult:
    return sweep(tmp_path_factory.mktemp("logs"), selector=["random", "oort"], seed="0,1,2")


def test_a_sweep_result_has_a_row_per_job(sweep_result: fedcohort.SweepResult) -> None:
    runs = sweep_result.runs
    pairs = [(selector, str(seed)) for selector in ("random", "oort") for seed in range(3)]
    assert list(zip(runs["selector"], runs["seed"], strict=True)) == pairs
    assert set(runs["status"]) == {"done"}
    assert runs["accuracy"].tolist() == [result.accuracy for result in sweep_result.results]
    assert sweep_result.rounds.index.names == ["run", "step"]
    assert len(sweep_result.rounds) == 6 * 3
    assert sweep_result.clients.groupby(level="run")["selected"].sum().tolist() == [8] * 6
    assert "6 jobs" in repr(sweep_result)
    assert sweep_result._repr_html_().count("<tr>") == 1 + 6


def test_a_sweep_is_compared_by_what_it_varies(sweep_result: fedcohort.SweepResult, tmp_path: Path) -> None:
    comparison = fedcohort.compare(sweep_result)
    table = comparison.table.set_index("selector")
    assert table.loc["oort", "baseline"] == "random"
    means = sweep_result.rounds.groupby("run")["test/acc"].apply(lambda values: values[1:].mean())
    oort = [name.startswith("oort") for name in means.index]
    assert table.loc["oort", "mean"] == pytest.approx(means[oort].mean())
    assert any("oort" in line and "random" in line for line in comparison.verdicts)
    html = comparison._repr_html_()
    assert all(line in html for line in comparison.verdicts)
    assert "6 runs of sweep" in repr(comparison)
    assert comparison.write(tmp_path)[0] == tmp_path / "report.html"
    by_folder = fedcohort.compare([sweep_result.folders[0], *sweep_result.results[1:]], baseline="random")
    assert by_folder.table.equals(comparison.table)
    assert fedcohort.compare(sweep_result.results[0]).table["selector"].tolist() == ["random"]
    with pytest.raises(TrackingError, match="there is no finished run to compare"):
        fedcohort.compare([])
    with pytest.raises(CheckpointError, match="/last is not the folder of a run"):
        fedcohort.compare("last")


def test_runs_with_equal_folder_names_are_different_runs(sweep_result: fedcohort.SweepResult, tmp_path: Path) -> None:
    originals = sweep_result.folders[:2]
    copies = [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in originals]
    comparison = fedcohort.compare([*originals, *copies])
    assert sorted(comparison.answer.frames.runs["run"]) == sorted(map(str, copies))
    names = ", ".join(folder.name for folder in originals)
    assert f"left out: {names}: a newer run has the same settings and seed" in comparison.answer.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baselin": "random"}, "there is no option 'baselin'; .* did you mean baseline"),
        ({"baseline": "flash"}, r"baseline must be a value of selector \(oort, random\), got 'flash'"),
        ({"sweep": "last"}, "sweep chooses runs in MLflow, but runs were passed, too: leave out"),
        ({"horizon": 0}, r"horizon must be an integer in \[1, inf\), got 0"),
    ],
)
def test_invalid_comparison_options_raise_an_error(
    sweep_result: fedcohort.SweepResult, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        fedcohort.compare(sweep_result, **options)


@pytest.mark.parametrize("runs", [3, object(), b"logs", [3], [None], (path for path in (1.5,))])
def test_runs_that_are_no_paths_are_rejected(runs: Any) -> None:
    with pytest.raises(OptionError, match="runs must be a path, got"):
        fedcohort.compare(runs)


@pytest.mark.parametrize("result_class", [fedcohort.RunResult, fedcohort.SweepResult])
def test_a_result_is_made_of_a_path_or_a_text(result_class: Any, sweep_result: fedcohort.SweepResult) -> None:
    assert result_class(str(sweep_result.folder)).folder == sweep_result.folder
    with pytest.raises(OptionError, match="folder must be a path, got 3"):
        result_class(3)
    with pytest.raises(OptionError, match="out must be a path, got None"):
        fedcohort.compare(sweep_result).write(None)  # type: ignore[arg-type]


def test_a_launcher_and_a_folder_have_a_range() -> None:
    with pytest.raises(OptionError, match="launcher must be a text that is not empty, got"):
        fedcohort.sweep(launcher=["local"], seed=[0])  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="is not the folder of a run: there is no such folder"):
        fedcohort.compare("x" * 5000)


def test_jobs_that_would_be_rejected_keep_a_sweep_from_starting(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"1 of 2 jobs would be rejected(.|\n)*cohort=400 exceeds clients=12"):
        sweep(tmp_path, cohort=[4, 400])
    assert not list(tmp_path.iterdir())
    skipped = sweep(tmp_path, cohort=[4, 400], **{"sweep.skip_refused": True})
    assert len(skipped.jobs) == 1


@pytest.mark.parametrize("metric", [None, "server_val/acc"])
def test_a_job_that_fails_does_not_end_the_others(metric: str | None, tmp_path: Path) -> None:
    result = sweep(tmp_path, objective_metric=metric, **{"split.limit": [3, None]})
    assert result.runs["status"].tolist() == ["failed", "done"]


def test_ctrl_c_returns_the_jobs_so_far(tmp_path: Path) -> None:
    press = {"+callback.press._target_": f"{PressCtrlC.__module__}.PressCtrlC", "+callback.press.step": 1}
    result = sweep(tmp_path, seed=[0, 1], rounds=3, **press)
    assert [job.how for job in result.jobs] == ["stopped"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (folder,) = (tmp_path / "sweeps").iterdir()
    assert len((sweep_folder.read_plan(folder) or sweep_folder.SweepPlan()).jobs) == 2
    assert run(tmp_path / "other").status == "finished"


def test_a_sweep_over_rounds_has_a_run_for_each(tmp_path: Path) -> None:
    """With `resume=True` a job extends a run of an earlier sweep, never one of the same sweep."""
    assert sweep(tmp_path, rounds=1).runs["status"].tolist() == ["done"]
    extended = sweep(tmp_path, rounds=[2, 3], resume=True)
    assert [len(result.rounds) - 1 for result in extended.results] == [2, 3]
    assert len(list((tmp_path / "runs").iterdir())) == 2, "one continues the run of 1 round"
