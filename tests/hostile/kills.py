"""Kills of runs, sweeps and studies at distinct points: resume=true continues each, to the bits of an unbroken one.

A run is killed in a forked child, at a chosen call of a function that it calls in training, in the journal, the tables,
the checkpoint or its end. Sweeps and studies are real commands, whose workers or parent are killed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fedcohort.console.summary import Summary
from fedcohort.lightning import checkpoint
from fedcohort.record import claim, client_table, folder, journal, provenance
from fedcohort.startup import fit
from fedcohort.training.local import LocalTrainer
from hostile.harness import ENDED_BEFORE, ROOT, Answer, Case
from killing import in_a_child
from run_harness import go

WORDS = ("selector=flash", "agg=scaffold", "rounds=4", "callback=default")
QUIET = ("callback.figures=null", "callback.progress=null")
POINTS: dict[str, tuple[Any, str]] = {
    "claiming the folder": (claim, "claim_folder"),
    "noting the start": (provenance, "append_start"),
    "beginning the fit": (fit, "_begin"),
    "training a client": (LocalTrainer, "begin_hooks"),
    "committing a journal line": (journal, "commit_step"),
    "writing the client table": (client_table, "write_step"),
    "writing a checkpoint": (checkpoint, "write_checkpoint"),
    "renaming a checkpoint": (checkpoint, "rename_checkpoint"),
    "syncing a file": (os, "fsync"),
    "replacing a file": (os, "replace"),
    "writing a file": (folder, "write_atomically"),
    "merging the client tables": (client_table, "merge_steps"),
    "writing the summary": (Summary, "finish"),
    "ending the journal": (journal.Journal, "finish"),
}
PER_POINT = {"training a client": 6, "syncing a file": 8, "replacing a file": 8}  # calls; 5 of other points
WAIT_S = 600.0  # on a busy machine


def _quietly(work: Callable[[], object], path: Path) -> Callable[[], object]:
    def silent() -> object:
        with path.open("a") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        try:
            return work()
        except KeyboardInterrupt:  # the command ends so, too, without a traceback
            raise SystemExit(130) from None

    return silent


def _counted(owner: Any, name: str, call: int, act: Callable[[], None], *, before: bool) -> None:
    """Do `act` before or after the `call`-th call of owner.name; only in a forked child, because the patch stays."""
    original, count = getattr(owner, name), Counter[str]()

    def counted(*args: Any, **kwargs: Any) -> Any:
        count["n"] += 1
        if count["n"] == call and before:
            act()
        result = original(*args, **kwargs)
        if count["n"] == call and not before:
            act()
        return result

    setattr(owner, name, counted)


@cache
def _whole() -> tuple[Path, dict[str, int]]:
    """The folder of an unbroken run, and how often it calls each point."""
    home = Path(tempfile.mkdtemp(prefix="kills-"))

    def count_all() -> None:
        found = Counter[str]()
        for point, (owner, name) in POINTS.items():
            original = getattr(owner, name)

            def counted(*args: Any, _original: Any = original, _point: str = point, **kwargs: Any) -> Any:
                found[_point] += 1
                return _original(*args, **kwargs)

            setattr(owner, name, counted)
        go(home, *WORDS, *QUIET)
        (home / "counts.json").write_text(json.dumps(found))

    if in_a_child(_quietly(count_all, home / "log")):
        raise RuntimeError((home / "log").read_text()[-2000:])
    (path,) = (home / "runs").iterdir()
    return path, json.loads((home / "counts.json").read_text())


def _differences(path: Path) -> str:
    """What differs in the run folder `path` from an unbroken run's."""
    whole = _whole()[0]
    ours, theirs = ([json.loads(line) for line in (each / "journal.jsonl").open()] for each in (path, whole))
    if [line["fingerprint"] for line in ours] != [line["fingerprint"] for line in theirs]:
        return "the journal has other fingerprints"
    if [line["metrics"] for line in ours] != [line["metrics"] for line in theirs]:
        return "the journal has other metrics"
    if (path / "weights.pt").read_bytes() != (whole / "weights.pt").read_bytes():
        return "weights.pt differs"
    tables = [pd.read_parquet(each / "clients.parquet") for each in (path, whole)]
    return "" if tables[0].equals(tables[1]) else "clients.parquet differs"


def _kill_run(number: int, point: str, call: int, before: bool, home: Path) -> Answer:
    log = home / "log"

    def broken() -> None:
        _counted(*POINTS[point], call, lambda: os.kill(os.getpid(), number), before=before)
        go(home, *WORDS, *QUIET)

    status = in_a_child(_quietly(broken, log))
    if status == 0 and number == signal.SIGKILL:
        return Answer(1, "the point was never reached")
    status = in_a_child(_quietly(lambda: go(home, *WORDS, *QUIET, "resume=true"), log))
    return Answer(os.waitstatus_to_exitcode(status), f"{log.read_text()[-3000:]}\nends whole")


def _check_run(home: Path) -> str:
    finished = [path for path in (home / "runs").iterdir() if folder.status_of(path).get("status") == "finished"]
    return _differences(finished[0]) if len(finished) == 1 else f"{len(finished)} runs are finished"


def _run_cases() -> Iterable[Case]:
    counts = _whole()[1]
    for point, count in counts.items():
        n = min(count, PER_POINT.get(point, 5))
        calls = sorted({1 + round(k * (count - 1) / max(1, n - 1)) for k in range(n)})
        for call in calls:
            numbers = [signal.SIGKILL] if call % 2 else [signal.SIGKILL, signal.SIGTERM]
            numbers += [signal.SIGINT] if call == calls[-1] else []
            for k, number in enumerate(numbers):
                before = (call + k) % 2 == 0
                name = f"{number.name} {'before' if before else 'after'} call {call} of {count}: {point}"
                run = partial(_kill_run, number, point, call, before)
                yield Case(name, run, (), accepted=True, check=_check_run)


def _descendants(pid: int) -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def _wait(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _start(words: Iterable[str], home: Path, log: Path) -> "subprocess.Popen[bytes]":
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    with log.open("ab") as file:
        return subprocess.Popen(list(words), cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def _kill(process: "subprocess.Popen[bytes]", whom: str, number: int) -> tuple[list[int], bool]:
    """Send a signal to the command or to its newest worker.

    Returns:
        The processes of the command's family before the signal, and whether one of them received it: both may end by
        themselves while they are looked for.
    """
    family = [process.pid, *_descendants(process.pid)]
    workers = [pid for pid in family[1:] if b"forkserver" in _command_line(pid)]
    try:
        os.kill(process.pid if whom == "parent" else workers[-1], number)
    except (ProcessLookupError, IndexError):
        return family, False
    return family, True


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _lines(home: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in home.glob("**/runs/*/journal.jsonl"))


def _sweep(logs: Path, *launcher: str) -> list[str]:
    words = ["seed=0,1,2", "clients=12", "cohort=4", "rounds=300", "model=logreg", "client.epochs=1", "callback=none"]
    return [sys.executable, "train.py", "-m", *launcher, *words, "logger=none", f"paths.logs={logs}"]


def _kill_sweep(number: int, whom: str, lines: int, launcher: tuple[str, ...], home: Path) -> Answer:
    """Kill it once its runs have so many journal lines: all processes end, and a resume completes it."""
    log, logs = home / "log", home / "logs"
    process = _start(_sweep(logs, *launcher), ROOT, log)
    reached = _wait(lambda: process.poll() is not None or _lines(home) >= lines)
    family, killed = _kill(process, whom, number)
    process.wait()
    if not reached:
        return Answer(1, f"the sweep has not trained within {WAIT_S:g} s: this machine is too busy to tell")
    if not _wait(lambda: all(_is_gone(pid) for pid in family)):
        return Answer(None, f"processes are left: {[pid for pid in family if not _is_gone(pid)]}")
    (sweep,) = (logs / "sweeps").iterdir()
    status = [sys.executable, "-m", "fedcohort", "sweep", "status", sweep.name, f"logs={logs}"]
    _start(status, ROOT, home / "status").wait()
    if "running" in (text := (home / "status").read_text()):
        return Answer(1, text)
    again = _start([*_sweep(logs, *launcher), "resume=true"], ROOT, log)
    again.wait()
    return Answer(again.returncode, log.read_text()[-3000:] + ENDED_BEFORE * (not killed))


@cache
def _whole_sweep() -> dict[str, bytes]:
    """The weights of each seed's run, one by one in this process's child."""
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    words = ("clients=12", "cohort=4", "rounds=300", "model=logreg", "client.epochs=1", "callback=none", "logger=none")
    for seed in range(3):
        in_a_child(_quietly(partial(go, home, *words, f"seed={seed}", small=False), home / "log"))
    return {path.name: (path / "weights.pt").read_bytes() for path in (home / "runs").iterdir()}


def _check_sweep(home: Path) -> str:
    runs = list((home / "logs" / "runs").iterdir())
    found = {path.name: (path / "weights.pt").read_bytes() for path in runs if (path / "weights.pt").exists()}
    return "" if found == _whole_sweep() else f"other runs or weights: {sorted(path.name for path in runs)}"


STUDY = {
    "title": "Kills",
    "question": "Does it continue?",
    "common": ["dataset=digits", "clients=12", "cohort=4", "rounds=200", "model=logreg", "client.epochs=1"],
    "baseline": "random",
    "selectors": ["round_robin"],
    "cells": {"equal": {"words": ["heterogeneity=iid"]}},
    "seeds": [0, 1, 2],
}


def _study(home: Path, log: Path, n_jobs: int) -> "subprocess.Popen[bytes]":
    if not (home / "studies").exists():
        (home / "studies" / "kills").mkdir(parents=True)
        (home / "studies" / "kills" / "study.yaml").write_text(yaml.safe_dump(STUDY))
        (home / "configs").symlink_to(ROOT / "configs")
    words = [sys.executable, "-m", "fedcohort", "study", "run", "kills", f"n_jobs={n_jobs}"]
    return _start(words, home, log)


def _kill_study(number: int, whom: str, lines: int, n_jobs: int, home: Path) -> Answer:
    """Kill it; a killed worker costs its run alone, and the same command completes the study."""
    log = home / "log"
    process = _study(home, log, n_jobs)
    _wait(lambda: process.poll() is not None or _lines(home) >= lines)
    family, killed = _kill(process, whom, number)
    process.wait()
    if not _wait(lambda: all(_is_gone(pid) for pid in family)):
        return Answer(None, "processes are left")
    text = log.read_text()
    if (
        killed
        and whom == "worker"
        and (text.count("failed: its process was ended by") != 1 or "done     5" not in text)
    ):
        return Answer(1, text)
    again = _study(home, log, n_jobs)
    again.wait()
    return Answer(again.returncode, log.read_text()[-3000:] + ENDED_BEFORE * (not killed))


def _study_fingerprints(home: Path) -> list[str]:
    rows = pd.read_parquet(home / "studies" / "kills" / "results.parquet").sort_values(["selector", "seed"])
    return [f"{row.selector} {row.seed} {row.status} {row.fingerprint}" for row in rows.itertuples()]


@cache
def _whole_study() -> list[str]:
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    _study(home, home / "log", 1).wait()
    found = _study_fingerprints(home)
    shutil.rmtree(home)
    return found


def _check_study(home: Path) -> str:
    found = _study_fingerprints(home)
    return "" if found == _whole_study() else f"other results: {found}"


def cases() -> list[Case]:
    """Kills of runs, then of sweeps and studies."""
    local = ("hydra/launcher=local", "hydra.launcher.n_jobs=2")
    sweeps = [
        (signal.SIGKILL, "parent", 1, local),
        (signal.SIGKILL, "parent", 40, local),
        (signal.SIGKILL, "parent", 650, local),
        (signal.SIGKILL, "worker", 40, local),
        (signal.SIGTERM, "parent", 40, local),
        (signal.SIGKILL, "parent", 400, ()),
        (signal.SIGTERM, "parent", 400, ()),
    ]
    studies = [
        (signal.SIGKILL, "worker", 40, 2),
        (signal.SIGTERM, "worker", 40, 2),
        (signal.SIGKILL, "parent", 40, 2),
        (signal.SIGTERM, "parent", 250, 2),
        (signal.SIGKILL, "parent", 250, 1),
    ]
    found = list(_run_cases())
    for number, whom, lines, launcher in sweeps:
        name = f"{number.name} to the {whom} of a sweep at line {lines}, {' '.join(launcher) or 'one by one'}"
        run = partial(_kill_sweep, number, whom, lines, launcher)
        found.append(Case(name, run, (), accepted=True, check=_check_sweep))
    for number, whom, lines, n_jobs in studies:
        name = f"{number.name} to the {whom} of a study at line {lines}, n_jobs={n_jobs}"
        run = partial(_kill_study, number, whom, lines, n_jobs)
        found.append(Case(name, run, (), accepted=True, check=_check_study))
    return found
