"""What Hydra gets back of a job: its number for a sweeper, its failure, and the record that it leaves in the sweep."""
# ruff: noqa: F811

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import OmegaConf, open_dict

from fedcohort.errors import ComponentError, FedcohortError, OptionError
from fedcohort.jobs import start as job
from fedcohort.jobs.job import check_objective, read_objective
from fedcohort.jobs.start import start as called
from fedcohort.lightning.module import MONITORED_METRICS
from fedcohort.record import history, sweep_folder
from fedcohort.startup import command_line, options, run
from run_harness import SMALL, compose_by_hydra
from tracking.databases import captured_log  # noqa: F401

SEARCHES = "hydra_plugins.hydra_optuna_sweeper.optuna_sweeper.OptunaSweeper"
OVERRIDES = (*SMALL, "rounds=1", "callback=default", "callback.figures=null", "callback.progress=null")
JOURNAL = (*OVERRIDES, "callback.summary=null", "objective_metric=server_val/acc")


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"


def start(logs: Path, *overrides: str, sweeper: str | None = None, number: int = 0) -> float | None:
    """What Hydra's launchers do, after composing the job; sweeper: None for Hydra's own."""
    names = {override.split("=")[0] for override in overrides}
    all_overrides = [
        *(override for override in OVERRIDES if override.split("=")[0] not in names),
        *overrides,
        f"paths.logs={logs}",
    ]
    cfg = copy.deepcopy(compose_by_hydra(tuple(all_overrides)))
    with open_dict(cfg):
        cfg.hydra.mode, cfg.hydra.job.num = RunMode.MULTIRUN, number
        cfg.hydra.sweep.dir = str(logs / "sweeps" / "s")
        cfg.hydra.sweeper._target_ = sweeper or cfg.hydra.sweeper._target_
        HydraConfig.instance().set_config(cfg)
        del cfg["hydra"]
    return called(cfg)


def record(logs: Path, number: int = 0) -> sweep_folder.JobRecord:
    return sweep_folder.read_job_records(logs / "sweeps" / "s")[number]


def test_a_component_error_is_printed_once(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`train.py` sets HYDRA_FULL_ERROR itself; only a user who has set it is shown the traceback."""
    overrides = (*OVERRIDES, "model=module", "model.path=user_networks.InPlace", f"paths.logs={logs}")
    cfg = copy.deepcopy(compose_by_hydra(overrides))
    with open_dict(cfg):
        HydraConfig.instance().set_config(cfg)
        del cfg["hydra"]
    lines: list[str] = []
    monkeypatch.setattr(job.log, "error", lambda text, *values: lines.append(text % values))
    monkeypatch.setenv(command_line.TRACEBACK_VARIABLE, "1")
    with pytest.raises(ComponentError, match="must not change its inputs in place"):
        called(cfg)
    monkeypatch.setattr(command_line, "_traceback_settings", [None])  # as while `train.py` calls Hydra
    with pytest.raises(SystemExit, match="2"):
        called(cfg)
    line = "forward of inputs [2, 1, 8, 8]: forward in eval mode must not change its inputs in place"
    assert [line in text for text in lines] == [True, True]


def test_the_objective_of_a_search_is_the_last_validation_value(logs: Path) -> None:
    """Also of a run that was finished before; without objective_metric it hears nothing."""
    value = start(logs, *JOURNAL, sweeper=SEARCHES)
    (folder,) = (logs / "runs").iterdir()
    last = json.loads((folder / "journal.jsonl").read_text().splitlines()[-1])
    assert value == last["metrics"]["server_val/acc"]
    assert record(logs) == sweep_folder.JobRecord(record(logs).words, "done", folder)
    assert start(logs, *JOURNAL, "resume=true", number=1) == value, "the metric is no part of what a run is"
    assert record(logs, 1).how == "skipped"
    assert start(logs, "resume=true", "callback.summary=null") is None


def test_an_objective_metric_that_is_not_measured_is_rejected() -> None:
    for metric in MONITORED_METRICS:
        options.check_objective_metric("objective_metric", metric)
    options.check_objective_metric("objective_metric", None)
    with pytest.raises(OptionError, match=r"one of server_val/acc, server_val/loss, or null, got 'test/acc' \(nothing"):
        options.check_objective_metric("objective_metric", "test/acc")
    with pytest.raises(OptionError, match=r"null, got 'best'$"):
        options.check_objective_metric("objective_metric", "best")
    config: dict[str, Any] = {"objective_metric": None, "callback": {}}
    check_objective(config, is_search=False)
    with pytest.raises(OptionError, match="set objective_metric=server_val/acc"):
        check_objective(config, is_search=True)
    with pytest.raises(OptionError, match=r"do not remove callback\.journal"):
        check_objective({**config, "objective_metric": "server_val/acc"}, is_search=False)


@pytest.mark.parametrize(("metrics", "line"), [({}, "was never measured"), ({"server_val/acc": "NaN"}, "is nan")])
def test_a_missing_or_nan_objective_fails_the_job(tmp_path: Path, metrics: dict[str, str], line: str) -> None:
    facts = {"step": 1, "time_ms": 0, "metrics": metrics, "trace": {}, "fingerprint": "", "cohort": [], "arrived": []}
    (tmp_path / history.JOURNAL_FILE).write_text(json.dumps(facts).replace('"NaN"', "NaN") + "\n")
    with pytest.raises(FedcohortError, match=line):
        read_objective(tmp_path, "server_val/acc")


def test_the_untrained_models_value_is_no_objective(tmp_path: Path) -> None:
    """With eval.every > rounds it is the only one there is, the same for all trials."""
    facts = {"time_ms": 0, "trace": {}, "fingerprint": "", "cohort": [], "arrived": []}
    lines = [{"step": 0, "metrics": {"server_val/acc": 0.1}, **facts}, {"step": 1, "metrics": {}, **facts}]
    (tmp_path / history.JOURNAL_FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(FedcohortError, match=r"was never measured in .*: lower eval\.every"):
        read_objective(tmp_path, "server_val/acc")


def test_a_failure_is_recorded_and_the_sweep_continues(logs: Path, captured_log: pytest.LogCaptureFixture) -> None:
    assert start(logs, "cohort=40") is None
    assert record(logs).how == "failed"
    assert record(logs).reason == "cohort=40 exceeds clients=12: lower cohort"
    assert captured_log.messages == ["cohort=40 exceeds clients=12: lower cohort"]


def test_a_failed_job_raises_its_error_in_a_search(logs: Path) -> None:
    with pytest.raises(FedcohortError, match="cohort=40 exceeds"):
        start(logs, "cohort=40", sweeper=SEARCHES, number=0)
    with pytest.raises(FedcohortError, match="cohort=40 exceeds"):
        start(logs, *JOURNAL, "cohort=40", number=1)
    with pytest.raises(OptionError, match="set objective_metric"):
        start(logs, sweeper=SEARCHES, number=2)
    assert [record(logs, number).how for number in range(3)] == ["failed"] * 3


def test_an_unexpected_error_is_logged_with_its_trace(
    logs: Path, captured_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(run, "make_observers", fail)
    assert start(logs) is None
    assert "Traceback" in captured_log.text
    assert re.match(r"ValueError: a bug \(.*test_start.py:\d+\)", record(logs).reason)


@pytest.mark.parametrize(("raised", "code"), [(SystemExit(143), 143), (KeyboardInterrupt(), None)])
def test_a_signal_ends_the_sweep(
    logs: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int | None
) -> None:
    def raise_stop(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(run, "make_observers", raise_stop)
    with pytest.raises(type(raised)):
        start(logs)
    assert record(logs).how == "stopped"


def test_sweeps_that_start_in_the_same_second_have_folders_of_their_own() -> None:
    result = OmegaConf.to_container(compose_by_hydra(()).hydra.sweep, resolve=False)
    assert isinstance(result, dict)
    assert "%S_%f" in result["dir"]
