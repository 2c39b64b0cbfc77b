"""Processor time and memory of a run besides its training: imports, files, figures, MLflow's process, help pages.

    python benchmarks/run_cost.py                 three repeats of each command, as a table
    python benchmarks/run_cost.py code=../main    of the checkout in another folder
    python benchmarks/run_cost.py repeats=1 rounds

Each command runs in a process of its own. Its cost is the user and system time of all processes that it starts, until
the last one has ended: those that outlive their parent are counted, because this process adopts them. Further words are
names of commands, none for all.
"""

import ctypes
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

PR_SET_CHILD_SUBREAPER = 36  # prctl.h
ROOT = Path(__file__).resolve().parents[1]
TRAIN = ("train.py", "selector=flash", "agg=scaffold")
BARE = (*TRAIN, "logger=none", "callback.figures=null")
CLI = ("-m", "fedcohort")
COMMANDS = {
    "default": TRAIN,
    "no MLflow": (*TRAIN, "logger=none"),
    "no figures": (*TRAIN, "callback.figures=null"),
    "neither": BARE,
    "neither, 1 round": (*BARE, "rounds=1"),
    "neither, client=adam, 1 round": (*BARE, "client=adam", "rounds=1"),
    "import torch": ("-c", "import torch"),
    "imports of a run": ("-c", "import fedcohort.startup.build, fedcohort.startup.fit"),
    "fedcohort --help": (*CLI, "--help"),
    "fedcohort run --help": (*CLI, "run", "--help"),
    "fedcohort study --help": (*CLI, "study", "--help"),
    "fedcohort study status": (*CLI, "study", "status", "axes_digits"),
    "train.py --help": ("train.py", "--help"),
}


@dataclass(frozen=True)
class Cost:
    """Cost of a command.

    Attributes:
        cpu_s: user and system time of all processes, in seconds.
        peak_mb: largest resident memory of one of the processes, in MB.
    """

    cpu_s: float
    peak_mb: float


def measure(words: tuple[str, ...], code: Path) -> Cost:
    """Return the cost of `python <words>` with the code of the checkout in `code`."""
    with tempfile.TemporaryDirectory() as folder:
        logs = (f"paths.logs={folder}",) if words[0] == "train.py" and "--help" not in words else ()
        environment = {**os.environ, "PYTHONPATH": str(code / "src"), "OMP_NUM_THREADS": "1"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            [sys.executable, *words, *logs], cwd=code, env=environment, stdout=subprocess.DEVNULL
        )
        peak_kb = 0
        with suppress(ChildProcessError):  # until no process is left
            while True:
                pid, status, usage = os.wait3(0)
                peak_kb = max(peak_kb, usage.ru_maxrss)
                if pid == process.pid and status:
                    raise SystemExit(f"{' '.join(words)} ended with status {status}")
        process.returncode = 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, peak_kb / 1e3)


def main(words: list[str]) -> None:
    """Measure the commands, and print a row for each."""
    options = dict(word.split("=") for word in words if "=" in word)
    names = [word for word in words if "=" not in word] or list(COMMANDS)
    repeats, code = int(options.get("repeats", 3)), Path(options.get("code", ROOT)).resolve()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f"{platform.processor() or platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, {code}")
    print("| command | s of processor time | of each repeat | MB at most |\n|---|---:|---|---:|")
    for name in names:
        costs = [measure(COMMANDS[name], code) for _ in range(repeats)]
        seconds = [cost.cpu_s for cost in costs]
        peak = max(cost.peak_mb for cost in costs)
        print(f"| {name} | {statistics.median(seconds):.1f} | {', '.join(f'{s:.2f}' for s in seconds)} | {peak:.0f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
