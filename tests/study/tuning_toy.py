"""Toys for tests of tuning: runs of tasks without training, and a search over the options of UCB-CS."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedcohort.study import tune
from fedcohort.study.result_files import DONE
from fedcohort.study.tasks import Outcome, Task
from study.tiny import TUNE, make_curve, write_study
from yaml_words import CONFIGS

FIRST = ["selector.discount=0.7", "selector.tie=random"]  # ucb_cs as it is


def played(play: Any) -> Any:
    """Return a replacement of the function that runs jobs, which calls `play` for each task."""
    return lambda tasks, launch: ((number, play(task)) for number, task in enumerate(tasks))


class Player:
    """Runs whose accuracy is 1 - (discount - .2)^2, and that of seed 8 .1 less."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def __call__(self, task: Task) -> Outcome:
        self.tasks.append(task)
        words = dict(word.split("=", 1) for word in task.overrides)
        value = 1 - (float(words["selector.discount"]) - 0.2) ** 2 - 0.1 * (task.seed == 8)
        curve = make_curve([0, 1, 2], [0.1, value, value], [0, 1, 2], [0, 1, 2])
        return Outcome(DONE, "", {}, curve)


def rise_late(task: Task) -> Outcome:
    """Return a run of six rounds whose accuracy is .3 from round 1, and .9 from round 4."""
    return Outcome(DONE, "", {}, make_curve(range(7), [0.1, 0.3, 0.3, 0.3, 0.9, 0.9, 0.9], range(7), range(7)))


def forbid(task: Task) -> Outcome:
    raise AssertionError(f"{task.overrides} is done again")


def search(folder: Path, trials: int = 4, rows: Sequence[str] = ("ucb_cs",)) -> list[str]:
    """Tune the methods, and return the output."""
    study, lines = write_study(folder, tune={**TUNE, "trials": trials}), list[str]()
    assert study.search_space is not None
    tune.Tuning(study, study.search_space, CONFIGS, folder / "logs", lines.append).run(rows)
    return lines
