"""The real command and what happens to it from outside: signals, and a reader that goes away."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from command_harness import Command
from config_options import ROOT

SMALL = ["clients=12", "cohort=4", "model=logreg", "client.epochs=1", "logger=none", "callback.figures=null"]


def test_a_signal_during_the_import_of_torch_gives_one_line(tmp_path: Path) -> None:
    line = [sys.executable, "train.py", "-m", "seed=0,1", *SMALL, f"paths.logs={tmp_path}"]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any("#0 : seed=0" in output_line for output_line in process.stdout)
    process.send_signal(signal.SIGTERM)
    _, output_line = process.communicate()
    assert (process.returncode, output_line) == (143, "stopped\n"), "earlier jobs of a sweep may have trained"
    assert not (tmp_path / "runs").exists()


def test_a_closed_output_pipe_ends_the_run_quietly(tmp_path: Path) -> None:
    """`python train.py | head -1`: where the pipe closes is up to the machine, but never in the middle of a round."""
    process = Command("rounds=2000", *SMALL, f"paths.logs={tmp_path}")
    process.wait_for("random-fedavg-digits")
    process.stdout.close()
    finished = process.finish()
    assert finished.returncode == 128 + signal.SIGPIPE
    run_folders = list((tmp_path / "runs").iterdir())
    assert finished.stderr.count("\n") == len(run_folders), "how to go on, if there is anything to go on with"
    for path in run_folders:
        assert (path / "last.ckpt").exists()
        assert json.loads((path / "status.json").read_text())["status"] == "interrupted"
