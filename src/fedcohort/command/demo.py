"""fedcohort demo, or make demo: FLASH and random on the same seed, beside each other."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedcohort.errors import OptionError
from fedcohort.host.commands import command

RUNS = {"flash": ["selector=flash", "agg=scaffold"], "random": ["selector=random", "agg=scaffold"]}
ROWS = (
    ("test accuracy", "test/acc", 100.0, "%"),
    ("best so far (early stop)", "test/acc_best", 100.0, "%"),
    ("worst 5 % of clients", "clients/acc_worst5", 100.0, "%"),
    ("virtual time", "time/virtual_s", 1 / 60, "min"),
    ("bytes down", "comm/down_bytes", 1e-6, "MB"),
)


def train(words: list[str]) -> dict[str, Any]:
    """`python train.py <words>`; returns the summary that it wrote."""
    sys.stdout.write(f"\n$ {command('python')} train.py {' '.join(words)}\n")
    sys.stdout.flush()
    run = subprocess.Popen([sys.executable, "train.py", *words])
    while run.returncode is None:
        with suppress(KeyboardInterrupt):  # the run has had the Ctrl-C too: it saves, and its code says so
            run.wait()
    if run.returncode:
        raise SystemExit(run.returncode)
    folders = Path("logs/runs").glob(f"{words[0].split('=')[1]}-scaffold-digits-*/summary.json")
    newest = max(folders, key=lambda path: path.stat().st_mtime)
    summary: dict[str, Any] = json.loads(newest.read_text())
    return summary


def main(words: Sequence[str] = ()) -> int:
    """The command; it takes no words. Raises `OptionError` for any."""
    if words:
        raise OptionError(f"the demo takes no options, got {' '.join(words)!r}")
    from rich.console import Console
    from rich.table import Table

    summaries = {name: train(words) for name, words in RUNS.items()}
    table = Table("same seed, same data, same clients' draws", *RUNS, title="FLASH beside random, both with SCAFFOLD")
    for label, name, scale, unit in ROWS:
        values = [scale * summary["final"][name] for summary in summaries.values()]
        table.add_row(label, *(f"{value:.1f} {unit}" for value in values))
    console = Console()
    console.print()
    console.print(table)
    for line in (
        f"One seed says little: {command('python')} train.py -m selector=random,flash seed=0,1,2,3,4",
        f"See both: {command('mlflow')} ui --backend-store-uri sqlite:///logs/mlflow.db",
    ):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0
