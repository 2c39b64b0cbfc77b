"""What an experiment of ours looks like in MLflow's pages: the columns that a comparison of selectors is about.

MLflow's table of runs shows no parameter and no metric until somebody picks columns. A saved view ("Views" on that
page) picks them for everybody; it is a tag of the experiment. An MLflow that doesn't know views ignores the tag.
"""

import json
import time

KEY = "fedcohort"
NAME = "Selectors"
COLUMNS = (
    "attributes.`Dataset`",
    "params.`selector`",
    "params.`agg`",
    "params.`seed`",
    "metrics.`test/acc`",
    "metrics.`test/acc_best`",
    "metrics.`clients/acc_worst5`",
    "metrics.`time/virtual_s`",
)
NOTE = (
    "Client selection in federated learning, one run a row. "
    f"[Selectors and results](#/experiments/%s/runs?viewStateShareKey={KEY}) picks the columns; "
    f"[charts](#/experiments/%s/runs?viewStateShareKey={KEY}&compareRunsMode=CHART) draws all metrics by round."
)


def experiment_tags() -> dict[str, str]:
    """The tags of a new experiment; whoever changes them there keeps the change."""
    now = time.time_ns() // 1_000_000
    state = json.dumps({"selectedColumns": COLUMNS})
    view = {"name": NAME, "createdAt": now, "updatedAt": now, "state": state}
    return {"mlflow.experimentKind": "custom_model_development", f"mlflow.sharedViewState.{KEY}": json.dumps(view)}


def experiment_note(experiment_id: str) -> str:
    """The experiment's description, with links to the view."""
    return NOTE % (experiment_id, experiment_id)
