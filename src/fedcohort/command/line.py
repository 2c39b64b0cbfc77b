"""The command line `fedcohort VERB ...`: one verb, one module of this package with a `main(words)`.

All verbs speak one dialect: things by their names or folders, options as name=value, and --help.
"""

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fedcohort.host import interrupt

RUN = "run"  # train.py itself, so that both ways to start a run are one
VERBS = {
    RUN: "train: as python train.py, in the folder that holds it",
    "demo": "a selector beside random and the best, on digits where selection pays, in about a minute",
    "sweep": "how a sweep stands (status), or its end (cancel), by its id",
    "compare": "a table over seeds with paired differences, and figures, from the runs that MLflow knows",
    "replay": "would another selector, or other options, have chosen otherwise? From a run's log, without training",
    "study": "run, follow, tune and report a study: regimes x selectors x seeds",
    "figures": "draw a run's figures again, or explain one round",
    "methods": "the words of a group with what their papers say, as a table",
    "profile": "where a round's time goes, stage by stage",
    "data": "load a dataset and show it as it is dealt to clients, in a table and a figure, without training",
    "prepare": "raw files (images, LEAF's JSON, CelebA, WaterBirds, Spawrious) as Parquet tables",
    "sync": "send to MLflow what it lacks of a run",
    "ui": "start MLflow's server, and name the page that shows the runs of the newest sweep",
    "new": "the three files of a new selector, aggregator, signal or dataset, which run as they stand",
    "completion": "the lines that make a shell complete verbs, groups and words",
}
HELP = {"-h", "--help", "help"}


def overview() -> str:
    """The verbs, a line each."""
    width = max(map(len, VERBS))
    lines = (f"  {verb:{width}}  {what}" for verb, what in VERBS.items())
    return "\n".join(["usage: fedcohort VERB [name=value ...]", "", *lines, "", "fedcohort VERB --help says more."])


def main(words: Sequence[str] | None = None) -> int:
    """Do what was typed; returns the exit code: 2 for what can't be read. words: None for the process's own."""
    verb, *rest = sys.argv[1:] if words is None else words or [""]
    if verb in HELP:
        sys.stdout.write(f"{overview()}\n")
        return 0
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, 1)
        message = f"there is no verb {verb!r}{f'; did you mean {near[0]}?' if near else ''}\n\n" if verb else ""
        sys.stderr.write(f"{message}{overview()}\n")
        return 2
    return _train(rest) if verb == RUN else _run_verb(verb, rest)


def _train(words: Sequence[str]) -> int:
    if not Path("train.py").exists():
        sys.stderr.write(f"fedcohort run is python train.py, and there is no train.py in {Path.cwd()}\n")
        return 2
    return os.execv(sys.executable, [sys.executable, "train.py", *words])


def _run_verb(verb: str, words: Sequence[str]) -> int:
    module = import_module(f"fedcohort.command.{verb}")
    if HELP & set(words):
        sys.stdout.write(f"{module.__doc__}\n")
        return 0
    from fedcohort.startup.refusals import in_one_line  # noqa: PLC0415 - imports Hydra

    codes: list[int] = []
    return in_one_line(lambda: codes.append(module.main(words)), words, Path.cwd() / "configs") or codes[-1]


def console() -> None:
    """What the installed script `fedcohort` calls."""
    raise SystemExit(interrupt.run_main(lambda: main(sys.argv[1:] or [""])))
