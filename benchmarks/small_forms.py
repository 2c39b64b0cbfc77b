"""Run time of the papers' experiments in their reduced CPU variants, `experiment=<name>_cpu`.

    python benchmarks/small_forms.py dataset=folder [...]      writes small_forms.md

    python benchmarks/small_forms.py cifar10=data/cifar10 shakespeare=data/shakespeare femnist=generated

Each variant whose dataset is named runs once through train.py, with the methods of its yaml file. `generated` in place
of a folder uses random data with the layout and size of the original (`made_data.py`); the page then gives no accuracy.
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

SCRIPT = Path(__file__).resolve()
ROOT = SCRIPT.parents[1]
GENERATED = "generated"


@dataclass(frozen=True)
class FormRun:
    """One run of a reduced experiment.

    Attributes:
        word: option of the group `experiment`.
        wall_s: seconds of the whole command.
        summary: content of the run's summary.json.
        generated: whether the data were random.
    """

    experiment: str
    wall_s: float
    summary: dict[str, Any]
    generated: bool = False


def measure(experiment: str, folder: str) -> FormRun:
    """Run an experiment in a new process. `folder` holds its data, or is `GENERATED`."""
    with tempfile.TemporaryDirectory() as logs:
        if folder == GENERATED:
            made_data.write_tables(dataset_of(experiment), Path(logs))
        path = f"dataset.path={logs if folder == GENERATED else Path(folder).absolute()}"
        command = [sys.executable, str(ROOT / "train.py"), f"experiment={experiment}", path, f"paths.logs={logs}"]
        start_s = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        wall_s = time.perf_counter() - start_s
        (file,) = Path(logs).glob("runs/*/summary.json")
        return FormRun(experiment, wall_s, json.loads(file.read_text()), folder == GENERATED)


def dataset_of(experiment: str) -> str:
    """Return the dataset option of an experiment."""
    return compose.compose_run([f"experiment={experiment}"], ROOT / "configs").choices["dataset"]


def page(runs: list[FormRun], load: float) -> str:
    """Return the text of small_forms.md. `load` is the largest load average, minus this benchmark's own process."""
    load_note = f", with other processes running (up to {load:.1f} at a time)" if load > 0.5 else ""
    about = (
        f"{datetime.date.today()}, {os.cpu_count()} cores{load_note}. Each row is one run of `train.py "
        "experiment=<name>` with seed 0, in one process of one thread, with the methods of the experiment's yaml file. "
        "Minutes are those of the whole command. They show how long a first run takes; the accuracies are not results. "
        "Rows without an accuracy used random data with the layout and size of the original. `python "
        "benchmarks/small_forms.py dataset=folder ...` writes this file."
    )
    header = ["experiment", "dataset", "selector", "agg", "rounds", "minutes", "final test/acc"]
    table = [header, ["---"] * 4 + ["---:"] * 3, *map(format_row, runs)]
    lines = [f"| {' | '.join(cells)} |" for cells in table]
    title = "# Run time of the reduced experiments"
    return "\n".join([title, "", *textwrap.wrap(about, 120), "", *lines, ""])


def format_row(run: FormRun) -> list[str]:
    """Return the cells of one experiment's row."""
    choices = [f"`{run.summary['choices'][group]}`" for group in ("dataset", "selector", "agg")]
    accuracy = "" if run.generated else f"{run.summary['final']['test/acc']:.3f}"
    figures = [str(run.summary["rounds"]), f"{run.wall_s / 60:.1f}", accuracy]
    return [f"`{run.experiment}`", *choices, *figures]


def main(arguments: list[str]) -> None:
    """Run the experiments of the named datasets, and write the page."""
    folders = dict(argument.split("=", 1) for argument in arguments)
    experiments = sorted(path.stem for path in (ROOT / "configs" / "experiment").glob("*_cpu.yaml"))
    dataset = {experiment: dataset_of(experiment) for experiment in experiments}
    if not_generated := sorted(
        dataset_name
        for dataset_name, folder in folders.items()
        if folder == GENERATED and dataset_name not in made_data.MAKERS
    ):
        raise SystemExit(f"{', '.join(not_generated)} cannot be generated, only {', '.join(made_data.MAKERS)}")
    if unknown := sorted(set(folders) - set(dataset.values())):
        choices = ", ".join(sorted(set(dataset.values())))
        raise SystemExit(f"no reduced experiment uses {', '.join(unknown)}: choose from {choices}")
    load, runs = 0.0, []
    for experiment in experiments:
        if dataset[experiment] in folders:
            runs.append(measure(experiment, folders[dataset[experiment]]))
            load = max(load, os.getloadavg()[0] - 1)
            sys.stdout.write(f"{experiment} took {runs[-1].wall_s:.0f} s\n")
    SCRIPT.with_suffix(".md").write_text(page(runs, load))


if __name__ == "__main__":
    main(sys.argv[1:])
