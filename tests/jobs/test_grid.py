"""Before the first job of a grid, jobs that would be rejected are listed with number, options and reason."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode

from config_options import CONFIGS
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.jobs import grid, sweep
from fedcohort.jobs.grid import Grid
from fedcohort.jobs.sweep import Sweep, split_into_jobs
from fedcohort.record.sweep_folder import SweepPlan, read_plan

COMMON = ("clients=12", "model=logreg")


@pytest.fixture
def launched_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """What the launcher is given, which starts nothing; the sweep is a new one."""
    jobs_of_launcher: list[list[str]] = []

    def launch(jobs: list[list[str]], initial_job_idx: int) -> list[object]:
        assert initial_job_idx == len(jobs_of_launcher)
        jobs_of_launcher.extend(jobs)
        return []

    monkeypatch.setattr(sweep, "CURRENT_SWEEP", Sweep())
    monkeypatch.setattr(Plugins, "instantiate_launcher", lambda *_, **__: SimpleNamespace(launch=launch))
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        yield jobs_of_launcher


def make_sweeper(logs: Path, *overrides: str) -> Grid:
    """Return the sweeper that `python train.py -m <overrides>` creates."""
    hydra = GlobalHydra.instance().hydra
    assert hydra is not None
    all_overrides = [*overrides, *COMMON, f"paths.logs={logs}"]
    config = hydra.compose_config("train", all_overrides, RunMode.MULTIRUN)
    grid.register_plugins()
    context = HydraContext(config_loader=hydra.config_loader, callbacks=None)  # type: ignore[arg-type]
    sweeper = Plugins.instance().instantiate_sweeper(config=config, hydra_context=context, task_function=print)
    assert isinstance(sweeper, Grid)
    return sweeper


def test_each_job_is_checked_with_all_of_its_overrides(tmp_path: Path, launched_jobs: list[list[str]]) -> None:
    """Values of sweeps: choices, a range, numbers, an alias with its options, components, and a derived option."""
    sweeper = make_sweeper(tmp_path, "selector=random,best", "seed=1,-1", "cohort=12,13")
    jobs = split_into_jobs(sweeper.typed)
    reasons = {item.job_number: item.reason.split(",")[0] for item in sweeper.list_rejections(jobs)}
    assert [item.words for item in sweeper.list_rejections(jobs)] == [jobs[number] for number in reasons]
    selector, seed, cohort = (
        "selector must be one of active_fl",
        "seed must be an integer in [0",
        "cohort=13 exceeds clients=12: lower cohort",
    )
    assert reasons == {1: cohort, 2: seed, 3: seed, 4: selector, 5: selector, 6: selector, 7: selector}
    for overrides, reason in [
        (["agg=fedavgm", "server=momentum,adam"], "agg=fedavgm stands for server=momentum, but server=adam"),
        (["agg=fedavg,feddf", "until.virtual_s=5"], "agg=feddf"),
        (["callback=default,none", "objective_metric=server_val/acc"], "objective_metric=server_val/acc is read"),
    ]:
        sweeper = make_sweeper(tmp_path, *overrides)
        (result,) = sweeper.list_rejections(split_into_jobs(sweeper.typed))
        assert result.job_number == 1
        assert result.reason.startswith(reason)
    assert launched_jobs == []


def test_no_job_starts_if_one_would_be_rejected(tmp_path: Path, launched_jobs: list[list[str]]) -> None:
    with pytest.raises(IncompatibleConfig) as caught:
        make_sweeper(tmp_path, "selector=random,flash", "cohort=4,40").sweep([])
    assert str(caught.value).splitlines() == [
        "2 of 4 jobs would be rejected, and none was started; the others run with sweep.skip_refused=true:",
        "  job 2 (selector=random cohort=40): cohort=40 exceeds clients=12: lower cohort",
        "  job 4 (selector=flash cohort=40): cohort=40 exceeds clients=12: lower cohort",
    ]
    assert launched_jobs == []
    assert list(tmp_path.iterdir()) == [], "there is no sweep"


def test_skip_refused_runs_the_valid_jobs(tmp_path: Path, launched_jobs: list[list[str]]) -> None:
    overrides = ("selector=random,flash", "cohort=4,40", "sweep.skip_refused=true", "hydra.sweeper.max_batch_size=1")
    make_sweeper(tmp_path, *overrides).sweep([])
    assert [job[:2] for job in launched_jobs] == [["selector=random", "cohort=4"], ["selector=flash", "cohort=4"]]
    plan = read_plan(sweep.CURRENT_SWEEP.folder or tmp_path)
    assert isinstance(plan, SweepPlan)
    assert plan.jobs == launched_jobs
    assert [(overrides[:2], reason) for overrides, reason in plan.refused] == [
        ([f"selector={name}", "cohort=40"], "cohort=40 exceeds clients=12: lower cohort")
        for name in ("random", "flash")
    ]
    sweep.CURRENT_SWEEP.folder = None
    with pytest.raises(IncompatibleConfig, match=r"^2 of 2 jobs would be rejected, and none was started:\n  job 1 "):
        make_sweeper(tmp_path, "cohort=40,41", "sweep.skip_refused=true").sweep([])


def test_the_sweeps_own_options_are_checked(tmp_path: Path, launched_jobs: list[list[str]]) -> None:
    with pytest.raises(OptionError, match="skip_refused must be true or false, got 'perhaps'"):
        make_sweeper(tmp_path, "sweep.skip_refused=perhaps").sweep([])
    with pytest.raises(OptionError, match=r"sweep\.wait=false needs hydra/launcher=slurm"):
        make_sweeper(tmp_path, "sweep.wait=false").sweep([])
    with pytest.raises(Exception, match=r"max_batch_size must be an integer in \[1, inf\) or null, got 0"):
        make_sweeper(tmp_path, "hydra.sweeper.max_batch_size=0")
    assert launched_jobs == []


def test_a_sweep_without_jobs_is_rejected(tmp_path: Path, launched_jobs: list[list[str]]) -> None:
    with pytest.raises(OptionError, match=r"the sweep has no jobs, as a range such as range"):
        make_sweeper(tmp_path, "seed=range(0)").sweep([])
    assert launched_jobs == []


def test_an_unexpected_error_of_a_check_is_raised(
    tmp_path: Path, launched_jobs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "check_before_data", lambda composition: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        make_sweeper(tmp_path, "seed=0,1").sweep([])
    assert launched_jobs == []
