"""Kills of sweeps and studies while their runs train: the same command completes them, with equal results.

Sweeps and studies are real commands, whose parent process or newest worker is killed as soon as the journals of so many
runs have so many lines. A command that ends before its kill is a failure, because the case then tests nothing.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pandas as pd
import yaml

from hostile.harness import KILLED, ROOT, Answer, Case
from hostile.kills import differences

WAIT_S = 600.0  # on a busy machine
POLL_S = 0.02
ROUNDS = 300
RUN = (
    *("clients=12", "cohort=4", f"rounds={ROUNDS}", "model=logreg", "client.epochs=1"),
    *("checkpoint.every=20", "checkpoint.every_s=0"),
)
QUIET = ("callback=default", "callback.figures=null", "callback.summary=null", "callback.progress=null", "logger=none")
LOCAL = ("hydra/launcher=local", "hydra.launcher.n_jobs=2")
STUDY = {
    "title": "Kills",
    "question": "Does it continue?",
    "common": ["dataset=digits", *RUN],
    "baseline": "random",
    "methods": ["round_robin"],
    "settings": {"equal": {"overrides": ["heterogeneity=iid"]}},
    "seeds": [0, 1, 2],
}
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Kill:
    """A signal to a process of the command, as soon as the journals of `runs` runs have `lines` lines each."""

    number: signal.Signals
    target: str
    runs: int
    lines: int

    def __str__(self) -> str:
        return f"{self.number.name} to the {self.target} at line {self.lines} of run {self.runs}"


def _descendants(pid: int) -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    pids = [pid]
    for pid_of_parent in pids:
        pids += [child for child, parent in parents.items() if parent == pid_of_parent]
    return pids[1:]


def _wait(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _is_worker(pid: int) -> bool:
    try:
        return b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _start(command: Iterable[str], home: Path, log: Path) -> Process:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    with log.open("ab") as file:
        return subprocess.Popen(list(command), cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def _journal_lengths(home: Path, pattern: str) -> list[int]:
    """Return the number of journal lines of each run, the longest journal first."""
    return sorted((path.read_bytes().count(b"\n") for path in home.glob(f"{pattern}/journal.jsonl")), reverse=True)


def _kill(process: Process, kill: Kill, home: Path, pattern: str) -> tuple[str, str]:
    """Wait for the moment of the kill, send the signal, and wait until all processes of the command are gone.

    Args:
        process: the command.
        kill: which process is killed, and when.
        home: a folder that holds those of the runs.
        pattern: of the run folders in it.

    Returns:
        The journals' lengths at the kill, and what went wrong, or an empty text.
    """

    def is_reached() -> bool:
        lengths = _journal_lengths(home, pattern)
        return len(lengths) >= kill.runs and lengths[kill.runs - 1] >= kill.lines

    is_ready = _wait(lambda: process.poll() is not None or is_reached())
    family = [process.pid, *_descendants(process.pid)]
    lengths = _journal_lengths(home, pattern)
    if not is_ready or process.poll() is not None or min(lengths) > ROUNDS:  # the journal begins with round 0
        process.kill()
        return "", f"ended before the kill, or took more than {WAIT_S:g} s; lines of the journals: {lengths}"
    target = process.pid if kill.target == "parent" else [pid for pid in family[1:] if _is_worker(pid)][-1]
    os.kill(target, kill.number)
    code = process.wait()
    if not _wait(lambda: all(_is_gone(pid) for pid in family)):
        return "", f"processes are left: {[pid for pid in family if not _is_gone(pid)]}"
    if code == 0:
        return "", f"exit status 0 after the kill; lines of the journals: {lengths}"
    return f"{KILLED}lines {lengths}, exit status {code}", ""


def _sweep(logs: Path, *launcher: str) -> list[str]:
    return [sys.executable, "train.py", "-m", *launcher, "seed=0,1,2", *RUN, *QUIET, f"paths.logs={logs}"]


def _kill_sweep(kill: Kill, launcher: tuple[str, ...], home: Path) -> Answer:
    """Kill a sweep: all processes end, its status is right, and resume=true completes it."""
    log, logs = home / "log", home / "logs"
    moment, error = _kill(_start(_sweep(logs, *launcher), ROOT, log), kill, logs, "runs/*")
    if error:
        return Answer(1, f"{log.read_text()[-1000:]}\n{error}")
    (sweep,) = (logs / "sweeps").iterdir()
    status = [sys.executable, "-m", "fedcohort", "sweep", "status", sweep.name, f"logs={logs}"]
    _start(status, ROOT, home / "status").wait()
    if "running" in (text := (home / "status").read_text()):
        return Answer(1, text)
    repeat = _start([*_sweep(logs, *launcher), "resume=true"], ROOT, log)
    repeat.wait()
    return Answer(repeat.returncode, f"{log.read_text()[-3000:]}\n{moment}")


@cache
def _whole_sweep() -> dict[str, Path]:
    """Return the run folders of an unbroken sweep, by name."""
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    _start(_sweep(home), ROOT, home / "log").wait()
    return {path.name: path for path in (home / "runs").iterdir()}


def _check_sweep(home: Path) -> str:
    runs, expected_runs = sorted((home / "logs" / "runs").iterdir()), _whole_sweep()
    if [path.name for path in runs] != sorted(expected_runs):
        return f"other runs: {[path.name for path in runs]}"
    differences_by_run = {path.name: differences(path, expected_runs[path.name]) for path in runs}
    return ", ".join(f"{name}: {text}" for name, text in differences_by_run.items() if text)


def _study(home: Path, log: Path, n_jobs: int) -> Process:
    if not (home / "studies").exists():
        (home / "studies" / "kills").mkdir(parents=True)
        (home / "studies" / "kills" / "study.yaml").write_text(yaml.safe_dump(STUDY))
        (home / "configs").symlink_to(ROOT / "configs")
    command = [sys.executable, "-m", "fedcohort", "study", "run", "kills", f"n_jobs={n_jobs}"]
    return _start(command, home, log)


def _kill_study(kill: Kill, n_jobs: int, home: Path) -> Answer:
    """Kill a study; a killed worker costs its run alone, and the same command completes the study."""
    log = home / "log"
    moment, error = _kill(_study(home, log, n_jobs), kill, home, "**/runs/*")
    text = log.read_text()
    if error:
        return Answer(1, f"{text[-1000:]}\n{error}")
    if kill.target == "worker" and (text.count("failed: its process was ended by") != 1 or "done     5" not in text):
        return Answer(1, text)
    repeat = _study(home, log, n_jobs)
    repeat.wait()
    return Answer(repeat.returncode, f"{log.read_text()[-3000:]}\n{moment}")


def _study_results(home: Path) -> tuple[list[str], pd.DataFrame]:
    """Return status and fingerprint of each run, and the curves without the seconds of this machine."""
    folder = home / "studies" / "kills"
    rows = pd.read_parquet(folder / "results.parquet").sort_values(["selector", "seed"])
    curves = pd.read_parquet(folder / "curves.parquet").sort_values(["selector", "seed", "step"], ignore_index=True)
    lines = [f"{row.selector} {row.seed} {row.status} {row.fingerprint}" for row in rows.itertuples()]
    return lines, curves.drop(columns="wall_s", errors="ignore")


@cache
def _whole_study() -> tuple[list[str], pd.DataFrame]:
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    _study(home, home / "log", 1).wait()
    result = _study_results(home)
    shutil.rmtree(home)
    return result


def _check_study(home: Path) -> str:
    (lines, curves), (expected_lines, expected_curves) = _study_results(home), _whole_study()
    if lines != expected_lines:
        return f"other results: {lines}"
    return "" if curves.equals(expected_curves) else "other curves"


def cases() -> list[Case]:
    """Kills of sweeps, then of studies, of three and six runs."""
    kill, term = signal.SIGKILL, signal.SIGTERM
    sweeps = [
        (Kill(kill, "parent", 1, 1), LOCAL),
        (Kill(kill, "parent", 2, 40), LOCAL),
        (Kill(kill, "parent", 3, 150), LOCAL),
        (Kill(kill, "worker", 2, 40), LOCAL),
        (Kill(term, "parent", 2, 40), LOCAL),
        (Kill(kill, "parent", 2, 100), ()),
        (Kill(term, "parent", 2, 100), ()),
    ]
    studies = [
        (Kill(kill, "worker", 2, 40), 2),
        (Kill(term, "worker", 2, 40), 2),
        (Kill(kill, "parent", 2, 40), 2),
        (Kill(term, "parent", 2, 200), 2),
        (Kill(kill, "parent", 1, 150), 1),
    ]
    results = []
    for moment, launcher in sweeps:
        name = f"{moment} of a sweep, {' '.join(launcher) or 'one by one'}"
        run = partial(_kill_sweep, moment, launcher)
        results.append(Case(name, run, (KILLED,), accepted=True, check=_check_sweep))
    for moment, n_jobs in studies:
        name = f"{moment} of a study, n_jobs={n_jobs}"
        run = partial(_kill_study, moment, n_jobs)
        results.append(Case(name, run, (KILLED,), accepted=True, check=_check_study))
    return results
