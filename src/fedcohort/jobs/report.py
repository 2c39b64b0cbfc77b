"""The answer to a sweep, after its last job: the verdict on the terminal, a report in its folder and in MLflow."""

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from fedcohort.errors import FedcohortError
from fedcohort.host.commands import fedcohort_command
from fedcohort.report.comparison import page
from fedcohort.report.comparison.verdicts import list_verdicts
from fedcohort.results.matching.question import Question
from fedcohort.startup.comparison import publish, read_answer
from fedcohort.tracking import comparison, identity
from fedcohort.tracking.comparison import Run
from fedcohort.tracking.runs import Query

log = logging.getLogger("fedcohort")
FOLDER = "report"  # in the sweep's


def report_sweep(sweep: Path, runs: Sequence[Run]) -> None:
    """Compare the runs of a sweep that MLflow knows, and print the verdict; print a warning where that fails.

    Args:
        sweep: folder of the sweep.
        runs: its runs; fewer than two are not compared.
    """
    tracked = identity.load(runs[0][0].folder) if len(runs) > 1 else None
    if tracked is None:
        return
    options = comparison.options_of(sweep.name, runs)
    try:
        query = Query(tracked.tracking_uri, tracked.experiment, sweep.name, options.get("filter"))
        rows, cols, baseline = options.get("rows", "selector"), options.get("cols"), options.get("baseline")
        answer = read_answer(query, Question(rows, cols, baseline=baseline))
        _, paths = page.write(answer, sweep / FOLDER)
        log.info("report: %s", sweep / FOLDER / page.PAGE)
        for line in list_verdicts(answer):
            log.info("%s", line)
        publish(answer, query, paths)
    except FedcohortError as error:
        _warn(str(error), options)
    except Exception as error:  # whatever a server answers, or a figure: the runs are done
        _warn(f"{type(error).__name__}: {error}", options)


def _warn(why: str, options: dict[str, str]) -> None:
    again = shlex.join([*(f"{name}={value}" for name, value in options.items()), "report=true"])
    log.warning("the sweep has no report in MLflow (%s); `%s %s` makes it", why, fedcohort_command("compare"), again)
