"""The answer to a sweep, after its last job: the verdict on the terminal, a report in its folder and in MLflow."""

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from fedcohort.errors import FedcohortError
from fedcohort.host.commands import fedcohort
from fedcohort.report.comparison import page
from fedcohort.report.comparison.verdicts import list_verdicts
from fedcohort.results.matching.question import Question
from fedcohort.startup.comparison import publish, read_answer
from fedcohort.tracking import comparison, identity
from fedcohort.tracking.comparison import Run
from fedcohort.tracking.runs import Query

log = logging.getLogger("fedcohort")
FOLDER = "report"  # in the sweep's


def tell(sweep: Path, runs: Sequence[Run]) -> None:
    """Compare the `runs` of the sweep in the folder `sweep`, and say what came out. Nothing that goes wrong ends it.

    There is nothing to compare in fewer than two runs, and nobody to ask where MLflow knows none.
    """
    known = identity.load(runs[0][0].folder) if len(runs) > 1 else None
    if known is None:
        return
    given = comparison.options_of(sweep.name, runs)
    try:
        query = Query(known.tracking_uri, known.experiment, sweep.name, given.get("filter"))
        rows, cols, baseline = given.get("rows", "selector"), given.get("cols"), given.get("baseline")
        answer = read_answer(query, Question(rows, cols, baseline=baseline))
        _, paths = page.write(answer, sweep / FOLDER)
        log.info("report: %s", sweep / FOLDER / page.PAGE)
        for line in list_verdicts(answer):
            log.info("%s", line)
        publish(answer, query, paths)
    except FedcohortError as error:
        _warn(str(error), given)
    except Exception as error:  # whatever a server answers, or a figure: the runs are done
        _warn(f"{type(error).__name__}: {error}", given)


def _warn(why: str, given: dict[str, str]) -> None:
    again = shlex.join([*(f"{name}={value}" for name, value in given.items()), "report=true"])
    log.warning("the sweep has no report in MLflow (%s); `%s %s` makes it", why, fedcohort("compare"), again)
