"""Processor time and memory of a run besides its training: imports, figures, MLflow's process, help pages.

    python benchmarks/run_cost.py                    writes run_cost.md, from three repeats of each command
    python benchmarks/run_cost.py before=../old      also measures the code of another checkout, in turns
    python benchmarks/run_cost.py repeats=1 default  measures some commands, and writes nothing

Each command runs in a new process. Its cost is the user and system time of all processes that it starts, until
the last one has ended: those that outlive their parent are counted, because this process adopts them.
"""

import ctypes
import datetime
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fedcohort.host.processor import name_processor

PR_SET_CHILD_SUBREAPER = 36  # prctl.h
ROOT = Path(__file__).resolve().parents[1]
DRAW_FIGURES = "callback.figures.always=true"  # no terminal here
TRAIN = ("train.py", "selector=flash", "agg=scaffold")
BARE_RUN = (*TRAIN, "logger=none", "callback.figures=null")
CLI = ("-m", "fedcohort")
COMMANDS = {
    "import torch": ("-c", "import torch"),
    "imports": ("-c", "import fedcohort.startup.build, fedcohort.startup.fit"),
    "bare, 1 round": (*BARE_RUN, "rounds=1"),
    "bare": BARE_RUN,
    "figures": (*TRAIN, "logger=none", DRAW_FIGURES),
    "default": (*TRAIN, DRAW_FIGURES),
    "adam, 1 round": (*BARE_RUN, "rounds=1", "client=adam"),
    "fedcohort --help": (*CLI, "--help"),
    "fedcohort study --help": (*CLI, "study", "--help"),
    "fedcohort study status": (*CLI, "study", "status", "paper_regret"),
    "train.py --help": ("train.py", "--help"),
}
STAGES = {  # the difference of a command to the one before it
    "import torch": "import of torch",
    "imports": "all other imports",
    "bare, 1 round": "compose, check, load, build, one round, files",
    "bare": "49 further rounds",
    "figures": "figures and page",
    "default": "MLflow: its process, and a new database",
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


def measure(name: str, code: Path) -> Cost:
    """Return the cost of a command with the code of the checkout in `code`."""
    overrides = COMMANDS[name]
    if DRAW_FIGURES in overrides and "always:" not in (code / "configs" / "callback" / "default.yaml").read_text():
        overrides = tuple(
            word for word in overrides if word != DRAW_FIGURES
        )  # older code draws the figures of every run
    with tempfile.TemporaryDirectory() as folder:
        logs = (f"paths.logs={folder}",) if overrides[0] == "train.py" and "--help" not in overrides else ()
        environment = {**os.environ, "PYTHONPATH": str(code / "src"), "OMP_NUM_THREADS": "1"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            [sys.executable, *overrides, *logs], cwd=code, env=environment, stdout=subprocess.DEVNULL
        )
        peak_kb = 0
        with suppress(ChildProcessError):  # raised when no process is left
            while True:
                pid, status, usage = os.wait3(0)
                peak_kb = max(peak_kb, usage.ru_maxrss)
                if pid == process.pid and status:
                    raise SystemExit(f"{' '.join(overrides)} ended with status {status}")
        process.returncode = 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, peak_kb / 1e3)


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table in Markdown; all columns but the first are numbers."""
    return [f"| {' | '.join(cells)} |" for cells in (head, [":---", *["---:"] * (len(head) - 1)], *rows)]


def page(costs: dict[str, dict[str, list[Cost]]], load: float) -> str:
    """Return the text of run_cost.md.

    Args:
        costs: cost of each repeat, by checkout (`before`, `after`) and command.
        load: processes that wanted to run on the machine before the first command, on average over a minute.
    """
    medians = {
        code_name: {name: statistics.median(cost.cpu_s for cost in repeats) for name, repeats in by_command.items()}
        for code_name, by_command in costs.items()
    }
    stages = []
    for previous_stage, name in pairwise([None, *STAGES]):
        parts = [
            values[name or ""] - (values[previous_stage] if previous_stage else 0.0) for values in medians.values()
        ]
        stages.append([STAGES[name or ""], *(f"{part:.1f}" for part in parts)])
    commands = [
        [
            f"`{' '.join(overrides).removeprefix('-m ')}`",
            *(f"{values[name]:.1f}" for values in medians.values()),
            *(f"{max(cost.peak_mb for cost in repeats[name]):.0f}" for repeats in costs.values()),
        ]
        for name, overrides in COMMANDS.items()
    ]
    counts = sorted({len(repeats) for by_command in costs.values() for repeats in by_command.values()})
    n_repeats = " to ".join(map(str, counts))
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"  # a child has its parent's memory at first
    kernels = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    introduction = (
        f"{datetime.date.today()}, {os.cpu_count()} cores of {name_processor()}, kernels "
        f"of torch for {kernels}, load {load:.1f} before the first command: a busy machine needs more seconds for "
        f"equal work. Median of {n_repeats} repeats, which alternate between the versions. Seconds are user and system "
        "time of all processes of a command, until the last one has ended. MB are the largest resident memory of one "
        "process. `OMP_NUM_THREADS=1`, digits, 50 clients, and an empty folder of runs. "
        "`callback.figures.always=true` draws figures without a terminal."
    )
    return "\n".join(
        [
            "# What a run costs besides training",
            "",
            "    python benchmarks/run_cost.py before=<another checkout>",
            "",
            *textwrap.wrap(introduction, 120, break_on_hyphens=False, break_long_words=False),
            "",
            "## Processor seconds by stage of `train.py selector=flash agg=scaffold`",
            "",
            *table(["stage", *(f"s {code_name}" for code_name in medians)], stages),
            "",
            "## Commands",
            "",
            *table(
                [
                    "command",
                    *(f"s {code_name}" for code_name in medians),
                    *(f"MB {code_name}" for code_name in medians),
                ],
                commands,
            ),
            "",
            *NOTES,
            "",
        ]
    )


NOTES = textwrap.dedent(
    """\
    The rows of the first table add up to the default run with figures. A run whose output is no terminal, and a run
    of a sweep, draw no figures unless they are told to; `fedcohort figures <run folder>` draws them later.

    What was saved, and how:

    - Lightning imports torch's compiler (`torch._dynamo`, with sympy), and torchmetrics imports `scipy.signal` and
      matplotlib. Training uses none of them. `lightning/deferred_imports.py` puts stand-ins in their places during the
      import; whatever needs a module later gets the module itself, `torch.compile` included.
    - torch's FLOP counter and its optimizers import the compiler to be excluded from it. `training/flops.py` and
      `maths/optimizers.py` call the same functions without that wrapper: counts and steps are equal to the bit.
    - Garbage collection is off during imports, which create half a million objects and no garbage, and memory is not
      freed before a process ends.
    - A run without figures and MLflow imports neither pandas nor `scipy.special`. This is newer than the tables. On
      another AMD EPYC, 50 rounds with `logger=none callback.figures=null` took 8.6 s and 375 MB, and 9.7 s and 431 MB
      with the code before (the lower of two repeats, in turns).

    What is left: two fifths of a short run are the import of torch. MLflow's client imports pandas, FastAPI and its
    evaluation of language models, and a new SQLite database takes 1.5 s for its tables. pyarrow is 40 MB of each run,
    for the clients' tables.
    """
).splitlines()


def main(overrides: list[str]) -> None:
    """Measure the commands, and write the page if none was named."""
    options = dict(word.split("=") for word in overrides if "=" in word)
    names = [word for word in overrides if "=" not in word] or list(COMMANDS)
    codes = {"before": Path(options["before"]).resolve()} if "before" in options else {}
    codes["after"], repeats = ROOT, int(options.get("repeats", 3))
    load = os.getloadavg()[0]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    costs: dict[str, dict[str, list[Cost]]] = {code_name: {name: [] for name in names} for code_name in codes}
    for name in names:
        for _ in range(repeats):
            for code_name, code in codes.items():
                costs[code_name][name].append(measure(name, code))
        for code_name, costs_by_command in costs.items():
            command_costs = costs_by_command[name]
            seconds, peak_mb = [cost.cpu_s for cost in command_costs], max(cost.peak_mb for cost in command_costs)
            texts = ", ".join(f"{value:.2f}" for value in seconds)
            sys.stdout.write(f"{name} {code_name}: {texts} s, {peak_mb:.0f} MB\n")
            sys.stdout.flush()
    if len(names) == len(COMMANDS):
        Path(__file__).with_suffix(".md").write_text(page(costs, load))


if __name__ == "__main__":
    main(sys.argv[1:])
