"""Helpers for tests of tuning: tasks without training, and a search over the options of UCB-CS."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from config_options import CONFIGS
from fedcohort.study import tune
from fedcohort.study.result_files import DONE
from fedcohort.study.tasks import RunOutcome, RunTask
from study.small_study import TUNING, make_curve, write_study

DEFAULT_OVERRIDES = ["selector.discount=0.7", "selector.tie=random"]  # the defaults of selector=ucb_cs


def replace_runner(run_task: Any) -> Any:
    """Return a replacement of the function that runs jobs, which calls `run_task` for each task."""
    return lambda tasks, launch: ((number, run_task(task)) for number, task in enumerate(tasks))


class QuadraticRunner:
    """Tasks with accuracy 1 - (discount - 0.2)^2, which is 0.1 lower for seed 8."""

    def __init__(self) -> None:
        self.tasks: list[RunTask] = []

    def __call__(self, task: RunTask) -> RunOutcome:
        self.tasks.append(task)
        overrides = dict(word.split("=", 1) for word in task.overrides)
        value = 1 - (float(overrides["selector.discount"]) - 0.2) ** 2 - 0.1 * (task.seed == 8)
        curve = make_curve([0, 1, 2], [0.1, value, value], [0, 1, 2], [0, 1, 2])
        return RunOutcome(DONE, "", {}, curve)


def rise_late(task: RunTask) -> RunOutcome:
    """Return a run of six rounds whose accuracy is .3 from round 1, and .9 from round 4."""
    return RunOutcome(DONE, "", {}, make_curve(range(7), [0.1, 0.3, 0.3, 0.3, 0.9, 0.9, 0.9], range(7), range(7)))


def forbid(task: RunTask) -> RunOutcome:
    raise AssertionError(f"{task.overrides} is repeated")


def tune_methods(folder: Path, trials: int = 4, rows: Sequence[str] = ("ucb_cs",)) -> list[str]:
    """Tune the methods, and return the output."""
    study, lines = write_study(folder, tune={**TUNING, "trials": trials}), list[str]()
    assert study.search_space is not None
    tune.MethodTuning(study, study.search_space, CONFIGS, folder / "logs", lines.append).tune_methods(rows)
    return lines
