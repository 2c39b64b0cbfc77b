"""What an experiment of ours looks like in MLflow's pages: its columns, groups and charts, and where the answer is.

The columns are those that a comparison of selectors is about, the charts stand in the order of their interest.

MLflow's table of runs shows no parameter and no metric until somebody picks columns, and its charts come in the order
of the alphabet. A saved view ("Views" on that page) settles both for everybody: a group for all seeds of a config, with
their mean, the one with the best run first. (A group for each selector would be a mean over other federations as well.)
It is a tag of the experiment. It can't settle the order of the columns: MLflow puts its own first, of which the one for
data sets is the widest, then metrics, parameters, tags, each in the order of the alphabet; so that one is left out, few
metrics are in, and the first is the headline under a name that sorts first. Nor can it pin a run to the top, or sort
groups by their mean (MLflow 3.17.2). An MLflow that doesn't know views ignores the tag. The links say that it is about
training: MLflow opens its pages for language models otherwise.

The experiment's note stands above every list: the reports' verdicts, the newest first, begin it.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedcohort.record.tags import ASKED
from fedcohort.tracking.record import ALIKE, FIRST

if TYPE_CHECKING:
    from mlflow import MlflowClient

KEY = "fedcohort"
NAME = "Selectors"
COLUMNS = (
    "params.`selector`",
    "params.`agg`",
    f"tags.`{ASKED}`",
    "params.`seed`",
    f"metrics.`{FIRST}`",
    "metrics.`clients/acc_worst5`",
    "metrics.`test/acc_best`",
    "metrics.`time/virtual_s`",
)
GROUPS = {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": ALIKE}]}
REST = f"tag.{ALIKE}"  # MLflow's name for the group of those without one: the reports
SECTIONS = ("test", "clients", "time", "comm", "comp", "select", "round", "skew", "server_val")
LINK = f"#/experiments/%s/runs?workflowType=machine_learning&viewStateShareKey={KEY}"
NOTE_TAG = "mlflow.note.content"
ANSWER = "[Answer]("  # how a line of the note begins that tells of a report
SHOWN = 5  # reports that the note tells of
LONGEST_NOTE = 5000  # characters that MLflow takes for a tag of an experiment
NOTE = (
    f"Client selection in federated learning, one run a row. [Selectors and results]({LINK}) groups the runs "
    f"and picks the columns; [charts]({LINK}&compareRunsMode=CHART) draws all metrics by round."
)


@dataclass(frozen=True)
class Entry:
    """A report, as the experiment's note tells of it: the id of its run, its page and its verdict."""

    id: str
    page: str
    verdict: str


def experiment_tags() -> dict[str, str]:
    """The tags of a new experiment; whoever changes them there keeps the change."""
    now = time.time_ns() // 1_000_000
    sections = [{"uuid": f"{KEY}-{name}", "name": name, "display": True, "isReordered": False} for name in SECTIONS]
    bars = {"type": "BAR", "uuid": f"{KEY}-{FIRST}", "metricKey": FIRST, "metricSectionId": f"{KEY}-{SECTIONS[0]}"}
    first = {**bars, "displayName": "test/acc at the end", "isGenerated": False, "deleted": False}
    state = {
        "selectedColumns": COLUMNS,
        "orderByKey": f"metrics.`{FIRST}`",
        "orderByAsc": False,
        "groupBy": GROUPS,
        "groupsExpanded": {REST: True},
        "useGroupedValuesInCharts": True,
        "runsHiddenMode": "FIRST_20_RUNS",
        "compareRunSections": sections,
        "compareRunCharts": [first],  # MLflow adds the others
        "isAccordionReordered": True,
    }
    view = {"name": NAME, "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    return {"mlflow.experimentKind": "custom_model_development", f"mlflow.sharedViewState.{KEY}": json.dumps(view)}


def experiment_note(experiment_id: str) -> str:
    """The experiment's description, with links to the view."""
    return NOTE % (experiment_id, experiment_id)


def page_of(experiment_id: str, run_id: str, file: str) -> str:
    """The address of an artifact in MLflow's pages."""
    return f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/{file}?workflowType=machine_learning"


def show_reports(client: "MlflowClient", experiment_id: str, entries: Sequence[Entry]) -> None:
    """Have the experiment's note begin with the reports; entries: the newest first. What else is in it stays."""
    lines = [f"{ANSWER}{page_of(experiment_id, each.id, each.page)}): {each.verdict}" for each in entries[:SHOWN]]
    tags = client.get_experiment(experiment_id).tags
    before = tags.get(NOTE_TAG, experiment_note(experiment_id)).splitlines()
    rest = "\n".join(line for line in before if not line.startswith(ANSWER)).strip("\n")
    while lines and len(note := "\n\n".join([*lines, rest])) > LONGEST_NOTE:
        lines.pop()
    if lines:
        client.set_experiment_tag(experiment_id, NOTE_TAG, note)
