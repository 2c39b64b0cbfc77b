"""How long the papers' set-ups take in their small forms, `experiment=<word>_cpu`.

    python benchmarks/small_forms.py word=folder [...]      writes small_forms.md

    python benchmarks/small_forms.py cifar10=data/cifar10 cmnist=data/mnist shakespeare=data/shakespeare femnist=made

Of each form whose data are given, by the word of `dataset`, one run of train.py with the methods that the form names;
of the others nothing is said. `made` in place of a folder: data of the true layout and size with nothing in them
(`made_data.py`), of which the page tells the time alone.
"""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import made_data
from fedcohort.startup import compose

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]
MADE = "made"


@dataclass(frozen=True)
class Took:
    """A form's run. wall_s: of the whole command; summary: its summary.json; made: whether its data were made up."""

    word: str
    wall_s: float
    summary: dict[str, Any]
    made: bool = False


def measure(word: str, folder: str) -> Took:
    """Run a form, in a process of its own. folder: of its data, or MADE."""
    with tempfile.TemporaryDirectory() as logs:
        if folder == MADE:
            made_data.make(dataset_of(word), Path(logs))
        path = f"dataset.path={logs if folder == MADE else Path(folder).absolute()}"
        command = [sys.executable, str(ROOT / "train.py"), f"experiment={word}", path, f"paths.logs={logs}"]
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        wall_s = time.perf_counter() - begun
        (file,) = Path(logs).glob("runs/*/summary.json")
        return Took(word, wall_s, json.loads(file.read_text()), folder == MADE)


def dataset_of(word: str) -> str:
    """The word of a form's dataset."""
    return compose.compose_run([f"experiment={word}"], ROOT / "configs").choices["dataset"]


def page(runs: list[Took], load: float) -> str:
    """small_forms.md. load: the most processes, beside the benchmark's own, that wanted to run in a minute."""
    busy = f", with others at work on it (up to {load:.1f} beside its own)" if load > 0.5 else ""
    about = (
        f"{datetime.date.today()}, {os.cpu_count()} cores{busy}; one process of one thread. Each row is one run of "
        "`train.py experiment=<word>`, from the command to its end, with the methods that the form names and seed 0: "
        "what a first try takes, no result. Where there is no accuracy data of the true layout and size were made up. "
        "`python benchmarks/small_forms.py word=folder ...` writes this file."
    )
    head = ["experiment", "dataset", "selector", "agg", "rounds", "minutes", "test/acc at the end"]
    table = [head, ["---"] * 4 + ["---:"] * 3, *map(row, runs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    title = "# What the small forms of the papers' set-ups take"
    return "\n".join([title, "", *textwrap.wrap(about, 120), "", *lines, ""])


def row(run: Took) -> list[str]:
    """The cells of one form."""
    words = [f"`{run.summary['choices'][group]}`" for group in ("dataset", "selector", "agg")]
    accuracy = "" if run.made else f"{run.summary['final']['test/acc']:.3f}"
    figures = [str(run.summary["rounds"]), f"{run.wall_s / 60:.1f}", accuracy]
    return [f"`{run.word}`", *words, *figures]


def main(given: list[str]) -> None:
    folders = dict(word.split("=", 1) for word in given)
    forms = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*_cpu.yaml"))
    dataset = {form: dataset_of(form) for form in forms}
    if bare := sorted(word for word, folder in folders.items() if folder == MADE and word not in made_data.MAKERS):
        raise SystemExit(f"{', '.join(bare)}: nothing is made up but {', '.join(made_data.MAKERS)}")
    if unknown := sorted(set(folders) - set(dataset.values())):
        raise SystemExit(f"{', '.join(unknown)}: name datasets out of {', '.join(sorted(set(dataset.values())))}")
    load, runs = 0.0, []
    for form in forms:
        if dataset[form] in folders:
            runs.append(measure(form, folders[dataset[form]]))
            load = max(load, os.getloadavg()[0] - 1)
            sys.stdout.write(f"{form} took {runs[-1].wall_s:.0f} s\n")
    HERE.with_suffix(".md").write_text(page(runs, load))


if __name__ == "__main__":
    main(sys.argv[1:])
