"""`fedcohort.run` is `python train.py` in the user's own process: equal bits, messages and files."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

import fedcohort
from command_harness import run_command
from config_options import CONFIGS, ROOT
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.record.metadata import read_summary
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.report import run_figures
from fedcohort.types import RoundReport
from run_harness import SMALL

OPTIONS: dict[str, Any] = {
    "clients": 12,
    "cohort": 4,
    "rounds": 4,
    "model": "logreg",
    "client": {"epochs": 1},
    "logger": "none",
    "callback": {"figures": None},
    "checkpoint.every_s": 0,
}


class PressCtrlC(Observer):
    """Send SIGINT in a round, as Ctrl-C does."""

    def __init__(self, step: int) -> None:
        self.step = step

    def start(self, info: RunInfo) -> None:
        if self.step < 0:
            os.kill(os.getpid(), signal.SIGINT)

    def observe(self, report: RoundReport) -> None:
        if report.step == self.step:
            os.kill(os.getpid(), signal.SIGINT)


def run(logs: Path, **options: Any) -> fedcohort.RunResult:
    return fedcohort.run(**{**OPTIONS, **options}, paths={"logs": logs})


def test_importing_fedcohort_imports_no_slow_library() -> None:
    """PyTorch, Hydra and pandas take seconds; a name that is not there is an AttributeError, as of any module."""
    code = (
        "import sys, fedcohort; dir(fedcohort); print(*{'torch', 'hydra', 'pandas', 'numpy'} & set(sys.modules));"
        "fedcohort.runs"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout == "\n"
    assert "module 'fedcohort' has no attribute 'runs'; it has run, RunResult, sweep" in process.stderr


def test_a_run_has_the_bits_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(tmp_path / "python", selector="oort", **{"selector.penalty": 1.5})
    output = capsys.readouterr().out
    overrides = [*SMALL[:-2], "rounds=4", "client.epochs=1", "logger=none", "callback.figures=null"]
    process = run_command(*overrides, "selector=oort", "selector.penalty=1.5", f"paths.logs={tmp_path / 'typed'}")
    assert process.returncode == 0
    (folder,) = (tmp_path / "typed" / "runs").iterdir()
    assert result.folder.name == folder.name
    assert result.fingerprint == read_summary(folder)["fingerprint"]
    assert [line.split()[1] for line in output.splitlines()] == ["0/4", "1/4", "2/4", "3/4", "4/4"], "progress alone"


def test_a_result_has_frames_a_summary_and_a_page(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.status == "finished"
    assert result.rounds.index.tolist() == [0, 1, 2, 3, 4]
    assert result.accuracy == result.rounds["test/acc"].iloc[-1] == result.summary["final"]["test/acc"]
    assert {"step", "client", "selected", "train_loss"} <= set(result.clients)
    assert result.clients["selected"].sum() == 4 * 4
    assert {**result.summary, "wall_s": 0} == {**read_summary(result.folder), "wall_s": 0}
    status_line, accuracy, *_ = repr(result).splitlines()
    assert status_line == f"{result.folder.name}: finished after 4 of 4 rounds"
    assert accuracy.split() == ["test", "accuracy", f"{100 * result.accuracy:.1f}", "%"]
    html = result._repr_html_()
    assert "finished after 4 of 4 rounds" in html
    assert '<th scope="row">test accuracy</th>' in html


def test_a_result_that_is_shown_draws_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in a notebook has no terminal; without the observer nothing is drawn."""
    drawn: list[Path] = []
    monkeypatch.setattr(run_figures, "redraw_run", drawn.append)
    result = run(tmp_path, rounds=1, callback={"progress": None, "summary": None})
    assert not (result.folder / "report.html").exists()
    result._repr_html_()
    assert drawn == [result.folder]
    (result.folder / "report.html").write_text("")
    result._repr_html_()
    assert len(drawn) == 1


def test_ctrl_c_ends_the_run_after_the_round_and_leaves_no_trace_in_the_process(tmp_path: Path) -> None:
    uninterrupted = run(tmp_path / "whole")
    press = {"+callback.press._target_": f"{__name__}.PressCtrlC"}
    before = signal.getsignal(signal.SIGINT)
    torch.set_num_threads(2)
    stopped = run(tmp_path / "stopped", **press, **{"+callback.press.step": 2})
    assert (stopped.status, len(stopped.rounds)) == ("interrupted", 3)
    assert "resume=True" in repr(stopped)
    assert signal.getsignal(signal.SIGINT) is before
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)
    repeat = run(tmp_path / "stopped", resume=True)
    assert repeat.folder == stopped.folder
    assert repeat.fingerprint == uninterrupted.fingerprint
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "never", **press, **{"+callback.press.step": -1})


def test_a_wrong_option_raises_and_leaves_no_files(tmp_path: Path) -> None:
    """In a process that uses Hydra itself; after the mistakes a right option works."""
    initialize_config_dir(str(CONFIGS), version_base="1.3")
    hydra = GlobalHydra.instance().hydra
    environment = dict(os.environ)
    try:
        for options, error, message in (
            ({"selector": "flsh"}, OptionError, "did you mean selector=flash"),
            ({"round": 3}, OptionError, "there is no option 'round'; .* did you mean rounds"),
            ({"agg.mu": 0.1}, OptionError, "agg=fedavg has no option 'mu'"),
            ({"seed": -1}, OptionError, r"seed must be an integer in \[0, inf\), got -1"),
            ({"device": "phones", "deadline": "fixed", "deadline.s": -3}, OptionError, "deadline"),
            ({"attack": "loss_inflation", "availability": "nosuch"}, OptionError, "availability must be one of"),
        ):
            with pytest.raises(error, match=message) as caught:
                run(tmp_path, **options)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__
        with pytest.raises(IncompatibleConfig, match="cohort=100 exceeds clients=12"):
            fedcohort.run(**{**OPTIONS, "cohort": 100}, paths={"logs": tmp_path})
        assert not list(tmp_path.iterdir())
        assert run(tmp_path).status == "finished"
        assert GlobalHydra.instance().hydra is hydra
        assert compose("train")["rounds"] == 50
        assert dict(os.environ) == environment
    finally:
        GlobalHydra.instance().clear()


def test_the_configs_folder_is_found_above_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedcohort.api.run import find_config_folder  # noqa: PLC0415

    for place in (ROOT / "docs", tmp_path):  # the second has none above it: this installation's
        monkeypatch.chdir(place)
        assert find_config_folder() == ROOT / "configs"
