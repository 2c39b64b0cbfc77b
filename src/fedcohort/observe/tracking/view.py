"""What an experiment of ours looks like in MLflow's pages: its columns, and the order of its charts.

The columns are those that a comparison of selectors is about, the charts stand in the order of their interest.

MLflow's table of runs shows no parameter and no metric until somebody picks columns, and its charts come in the order
of the alphabet. A saved view ("Views" on that page) settles both for everybody; it is a tag of the experiment. It can't
settle the order of the columns: MLflow puts its own first, of which the one for data sets is the widest, then metrics,
parameters, tags; so that one is left out, and few metrics are in. An MLflow that doesn't know views ignores the tag.
The links say that it is about training: MLflow opens its pages for language models otherwise.
"""

import json
import time

from fedcohort.observe.tracking.record import ASKED

KEY = "fedcohort"
NAME = "Selectors"
COLUMNS = (
    "params.`selector`",
    "params.`agg`",
    f"tags.`{ASKED}`",
    "params.`seed`",
    "metrics.`test/acc`",
    "metrics.`test/acc_best`",
    "metrics.`clients/acc_worst5`",
    "metrics.`time/virtual_s`",
)
SECTIONS = ("test", "clients", "time", "comm", "comp", "select", "round", "skew", "server_val")
LINK = f"#/experiments/%s/runs?workflowType=machine_learning&viewStateShareKey={KEY}"
NOTE = (
    f"Client selection in federated learning, one run a row. [Selectors and results]({LINK}) picks the columns; "
    f"[charts]({LINK}&compareRunsMode=CHART) draws all metrics by round."
)


def experiment_tags() -> dict[str, str]:
    """The tags of a new experiment; whoever changes them there keeps the change."""
    now = time.time_ns() // 1_000_000
    sections = [{"uuid": f"{KEY}-{name}", "name": name, "display": True, "isReordered": False} for name in SECTIONS]
    charts = {"compareRunSections": sections, "compareRunCharts": [], "isAccordionReordered": True}  # MLflow adds them
    state = json.dumps({"selectedColumns": COLUMNS, **charts})
    view = {"name": NAME, "createdAt": now, "updatedAt": now, "state": state}
    return {"mlflow.experimentKind": "custom_model_development", f"mlflow.sharedViewState.{KEY}": json.dumps(view)}


def experiment_note(experiment_id: str) -> str:
    """The experiment's description, with links to the view."""
    return NOTE % (experiment_id, experiment_id)
