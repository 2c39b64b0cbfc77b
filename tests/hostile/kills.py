"""Kills of runs at distinct points: resume=true continues each, to the bits of an unbroken one.

A run is killed in a forked child, at a chosen call of a function that it calls in training, in the journal, the tables,
the checkpoint or its end. `sweep_kills.py` kills sweeps and studies.
"""

import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from fedcohort.console.summary import Summary
from fedcohort.lightning import checkpoint
from fedcohort.record import claim, client_table, folder, journal, provenance
from fedcohort.startup import fit
from fedcohort.training.local import LocalTrainer
from hostile.harness import Answer, Case
from process_kills import run_in_child
from run_harness import run_training

OVERRIDES = ("selector=flash", "agg=scaffold", "rounds=4", "callback=default")
QUIET = ("callback.figures=null", "callback.progress=null")
POINTS: dict[str, tuple[Any, str]] = {
    "claiming the folder": (claim, "claim_folder"),
    "noting the start": (provenance, "append_start_record"),
    "beginning the fit": (fit, "_record_run_start"),
    "training a client": (LocalTrainer, "begin_client_hooks"),
    "committing a journal line": (journal, "commit_step"),
    "writing the client table": (client_table, "write_rows"),
    "writing a checkpoint": (checkpoint, "write_checkpoint"),
    "renaming a checkpoint": (checkpoint, "rename_checkpoint"),
    "syncing a file": (os, "fsync"),
    "replacing a file": (os, "replace"),
    "writing a file": (folder, "write_atomically"),
    "merging the client tables": (client_table, "merge_step_files"),
    "writing the summary": (Summary, "finish"),
    "ending the journal": (journal.Journal, "finish"),
}
PER_POINT = {"training a client": 6, "syncing a file": 8, "replacing a file": 8}  # calls; 5 of other points


def _redirect_output(work: Callable[[], object], path: Path) -> Callable[[], object]:
    def act_silently() -> object:
        with path.open("a") as file:
            for descriptor in (1, 2):
                os.dup2(file.fileno(), descriptor)
        try:
            return work()
        except KeyboardInterrupt:  # the command ends so, too, without a traceback
            raise SystemExit(130) from None

    return act_silently


def _act_at_call(owner: Any, name: str, call: int, act: Callable[[], None], *, before: bool) -> None:
    """Do `act` before or after the `call`-th call of owner.name; only in a forked child, because the patch stays."""
    original, count = getattr(owner, name), Counter[str]()

    def count_call(*args: Any, **kwargs: Any) -> Any:
        count["n"] += 1
        if count["n"] == call and before:
            act()
        result = original(*args, **kwargs)
        if count["n"] == call and not before:
            act()
        return result

    setattr(owner, name, count_call)


@cache
def _run_to_end() -> tuple[Path, dict[str, int]]:
    """The folder of an unbroken run, and how often it calls each point."""
    home = Path(tempfile.mkdtemp(prefix="kills-"))

    def count_all() -> None:
        counts = Counter[str]()
        for point, (owner, name) in POINTS.items():
            original = getattr(owner, name)

            def count_call(*args: Any, _original: Any = original, _point: str = point, **kwargs: Any) -> Any:
                counts[_point] += 1
                return _original(*args, **kwargs)

            setattr(owner, name, count_call)
        run_training(home, *OVERRIDES, *QUIET)
        (home / "counts.json").write_text(json.dumps(counts))

    if run_in_child(_redirect_output(count_all, home / "log")):
        raise RuntimeError((home / "log").read_text()[-2000:])
    (path,) = (home / "runs").iterdir()
    return path, json.loads((home / "counts.json").read_text())


def differences(path: Path, reference: Path) -> str:
    """Return what differs in the run folder `path` from the folder `reference` of an unbroken run."""
    lines, expected = ([json.loads(line) for line in (item / "journal.jsonl").open()] for item in (path, reference))
    if [line["fingerprint"] for line in lines] != [line["fingerprint"] for line in expected]:
        return "the journal has other fingerprints"
    if [line["metrics"] for line in lines] != [line["metrics"] for line in expected]:
        return "the journal has other metrics"
    if (path / "weights.pt").read_bytes() != (reference / "weights.pt").read_bytes():
        return "weights.pt differs"
    tables = [pd.read_parquet(item / "clients.parquet") for item in (path, reference)]
    return "" if tables[0].equals(tables[1]) else "clients.parquet differs"


def _kill_run(number: int, point: str, call: int, before: bool, home: Path) -> Answer:
    log = home / "log"

    def run_until_kill() -> None:
        _act_at_call(*POINTS[point], call, lambda: os.kill(os.getpid(), number), before=before)
        run_training(home, *OVERRIDES, *QUIET)

    status = run_in_child(_redirect_output(run_until_kill, log))
    if status == 0 and number == signal.SIGKILL:
        return Answer(1, "the point was never reached")
    status = run_in_child(_redirect_output(lambda: run_training(home, *OVERRIDES, *QUIET, "resume=true"), log))
    return Answer(os.waitstatus_to_exitcode(status), f"{log.read_text()[-3000:]}\nends whole")


def _check_run(home: Path) -> str:
    finished = [path for path in (home / "runs").iterdir() if folder.read_status(path).get("status") == "finished"]
    return differences(finished[0], _run_to_end()[0]) if len(finished) == 1 else f"{len(finished)} runs are finished"


def _run_cases() -> Iterable[Case]:
    counts = _run_to_end()[1]
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


def cases() -> list[Case]:
    """List a kill before or after calls of each point."""
    return list(_run_cases())
