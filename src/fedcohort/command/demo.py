"""Compare a selector with random selection and with the best selector, in a setting where selection pays.

    fedcohort demo                          selector=flash
    fedcohort demo selector=mine client.lr=0.05

Three runs on one seed, which differ only in selector=: the one that is typed, random, and the best practical selector
of this setting in `studies/regimes_digits`.
"""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedcohort import units
from fedcohort.errors import OptionError
from fedcohort.host.commands import command, fedcohort
from fedcohort.startup.command_line import environment

SETTING = ("heterogeneity=noise_bimodal", "label_noise.share=0.7")
SAID = "35 of 50 clients have 90 % wrong labels"
OWN, BASELINE, BEST = "flash", "random", "flash_answered"
ROWS = (
    ("test accuracy", "test/acc", units.percent),
    ("best so far (early stop)", "test/acc_best", units.percent),
    ("worst 5 % of clients", "clients/acc_worst5", units.percent),
    ("virtual time", "time/virtual_s", units.seconds),
    ("bytes down", "comm/down_bytes", units.bytes_),
)


def train(words: Sequence[str]) -> dict[str, Any]:
    """`python train.py <words>`; returns the summary that it wrote. Raises `OptionError` where it wrote none."""
    before = set(Path("logs/runs").glob("*/summary.json"))
    sys.stdout.write(f"\n$ {command('python')} train.py {' '.join(words)}\n")
    sys.stdout.flush()
    run = subprocess.Popen([sys.executable, "train.py", *words], env=environment())
    while run.returncode is None:
        with suppress(KeyboardInterrupt):  # the run has had the Ctrl-C too: it saves, and its code says so
            run.wait()
    if run.returncode:
        raise SystemExit(run.returncode)
    written = set(Path("logs/runs").glob("*/summary.json")) - before
    if not written:
        raise OptionError(
            f"the demo compares what its runs leave in summary.json, and {' '.join(words)} left none: it needs "
            "callback.summary, and a run of its own (resume=false)"
        )
    summary: dict[str, Any] = json.loads(written.pop().read_text())
    return summary


def main(words: Sequence[str] = ()) -> int:
    """Run it; words: what differs from the defaults. Raises `OptionError` for those that move the runs elsewhere."""
    from rich.console import Console
    from rich.table import Table

    if moved := [word for word in words if word.startswith(("-", "paths."))]:
        raise OptionError(
            f"the demo takes words of train.py, but not {moved[0]!r}: it runs in logs/, one run at a time"
        )
    typed = {word.split("=", 1)[0].lstrip("+~"): word for word in words}
    own = typed.get("selector", f"selector={OWN}").split("=", 1)[1]
    setting = [word for word in SETTING if not {"heterogeneity", word.split("=", 1)[0]} & typed.keys()]
    others = [*setting, *(word for key, word in typed.items() if not f"{key}.".startswith("selector."))]
    options = [word for key, word in typed.items() if key.startswith("selector.")]
    runs = {own: [f"selector={own}", *options, *others]}
    for name in (BASELINE, BEST):
        runs.setdefault(name, [f"selector={name}", *others])
    summaries = {name: train(given) for name, given in runs.items()}
    as_it_is = others == list(SETTING)  # any other word may change the clients, or how many there are
    title = f"Where selection pays: {SAID}" if as_it_is else ""
    table = Table("same seed, same data, same clients' draws", *runs, title=title)
    for label, name, spell in ROWS:
        table.add_row(label, *(spell(summary["final"].get(name, math.nan)) for summary in summaries.values()))
    console, names = Console(), ",".join(runs)
    console.print()
    console.print(table)
    for line in (
        "With identical clients no method is significantly better than random selection, and with label noise methods "
        "that prefer high losses are far worse: studies/regimes_digits/README.md",
        f"One seed says little: {command('python')} train.py -m selector={names} {' '.join(others)} seed=0,1,2",
        f"See them all: {fedcohort('ui')} sweep=null",
    ):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    return 0
