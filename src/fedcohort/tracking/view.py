"""The experiment's page in MLflow: a saved view of all runs, one of each sweep, and a note with the latest verdicts.

MLflow's table of runs shows no parameters and no metrics until columns are selected, and sorts charts by name. A saved
view ("Views" on that page), which is a tag of the experiment, sets both: one group for all seeds of a config with their
mean, and the group with the best run first. A view of a sweep has only the sweep's runs, and columns for the main
metric and for the options in which its runs differ. With more columns MLflow, which shows metrics before parameters,
moves the selector off the screen.

A view cannot set the order of columns, pin a run to the top, or sort groups by their mean (MLflow 3.17.2). Versions of
MLflow without views ignore the tags. Links contain `workflowType`; otherwise MLflow opens its pages for language
models. The note is shown above every list of runs.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.record.tags import SWEEPS_TAG
from fedcohort.tracking.record import FIRST_METRIC_NAME

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

VIEW_TAG_PREFIX = "mlflow.sharedViewState."  # prefix of the tag of a view, before its key
ALL_RUNS_VIEW_KEY = "fedcohort"  # key of the view of all runs
SWEEP_VIEW_PREFIX = "sweep-"  # prefix of the key of a sweep's view
ALL_RUNS_FILE = Path(__file__).with_name("view_of_runs.json")  # the view of all runs, in MLflow's form
RUNS_PAGE_TEMPLATE = "#/experiments/%s/runs?workflowType=machine_learning&viewStateShareKey=%s"
NOTE_TAG = "mlflow.note.content"
VERDICT_TAG, PAGE_TAG = "verdict", "page"  # tags of a report
# tags of a report: its sweep, the options in which its runs differ, and when it was made
SWEEP_TAG, OPTIONS_TAG, DATE_TAG = ("report_sweep", "report_options", "report_date")
REPORT_PARAGRAPH_PREFIX = "**[Answer]("  # prefix of a paragraph of the note that a report has written
MAX_LISTED_REPORTS = 5  # reports in the note
MAX_NOTE_LENGTH = 5000  # characters of a tag of an experiment, MLflow's limit


def format_runs_page_url(experiment_id: str, sweep_id: str | None = None) -> str:
    """Return the path of a page on the server: the runs of an experiment, or the view of a sweep.

    Args:
        experiment_id: id of the experiment.
        sweep_id: id of the sweep; None for all runs.
    """
    return RUNS_PAGE_TEMPLATE % (
        experiment_id,
        ALL_RUNS_VIEW_KEY if sweep_id is None else f"{SWEEP_VIEW_PREFIX}{sweep_id}",
    )


def format_artifact_url(experiment_id: str, run_id: str, file_name: str) -> str:
    """Return the path of the page of an artifact on the server.

    Args:
        experiment_id: id of the experiment.
        run_id: id of the MLflow run.
        file_name: name of the artifact.
    """
    return f"#/experiments/{experiment_id}/runs/{run_id}/artifacts/{file_name}?workflowType=machine_learning"


def list_sweep_views(tags: Mapping[str, str]) -> list[str]:
    """Return the ids of the sweeps with a saved view, the newest last, from the tags `tags` of the experiment."""
    view_by_key = {k: json.loads(t) for k, t in tags.items() if k.startswith(f"{VIEW_TAG_PREFIX}{SWEEP_VIEW_PREFIX}")}
    sorted_tags = sorted(view_by_key, key=lambda k: view_by_key[k]["createdAt"])
    return [k.removeprefix(f"{VIEW_TAG_PREFIX}{SWEEP_VIEW_PREFIX}") for k in sorted_tags]


def make_experiment_tags() -> dict[str, str]:
    """Return the tags of a new experiment, with the view of all runs."""
    view_tags = {f"{VIEW_TAG_PREFIX}{ALL_RUNS_VIEW_KEY}": _make_view("Selectors", {})}
    return {"mlflow.experimentKind": "custom_model_development", **view_tags}


def write_experiment_note(experiment_id: str) -> str:
    """Return the text of the note on the experiment `experiment_id`, with links to a view of all its runs."""
    runs_page = format_runs_page_url(experiment_id)
    return (
        f"Client selection in federated learning, one run per row. [Selectors and results]({runs_page}) groups the "
        f"runs and selects columns; [charts]({runs_page}&compareRunsMode=CHART) shows all metrics by round."
    )


def save_sweep_view(mlflow_client: "MlflowClient", experiment_id: str, sweep_id: str, options: Sequence[str]) -> None:
    """Save MLflow's view of a sweep, a filter and columns for the table of its runs, as a tag of the experiment.

    Args:
        mlflow_client: client of MLflow.
        experiment_id: id of the experiment.
        sweep_id: id of the sweep.
        options: names of the parameters in which its runs differ, except the seed.
    """
    view_columns = [f"metrics.`{FIRST_METRIC_NAME}`", *(f"params.`{n}`" for n in options), "params.`seed`"]
    view_state = {"selectedColumns": view_columns, "searchFilter": f"tags.{SWEEPS_TAG} LIKE '%{sweep_id}%'"}
    mlflow_client.set_experiment_tag(
        experiment_id, f"{VIEW_TAG_PREFIX}{SWEEP_VIEW_PREFIX}{sweep_id}", _make_view(f"Sweep {sweep_id}", view_state)
    )


def show_reports(mlflow_client: "MlflowClient", experiment_id: str, report_runs: "Sequence[Run]") -> None:
    """Put links to reports at the start of an experiment's note, and keep its other text.

    Args:
        mlflow_client: client of MLflow.
        experiment_id: id of the experiment.
        report_runs: MLflow runs of the reports, the newest first.
    """
    report_texts = [
        _make_paragraph(experiment_id, run.info.run_id, run.data.tags) for run in report_runs[:MAX_LISTED_REPORTS]
    ]
    tags = mlflow_client.get_experiment(experiment_id).tags
    note_paragraphs = tags.get(NOTE_TAG, write_experiment_note(experiment_id)).split("\n\n")
    user_paragraphs = (
        p for p in note_paragraphs if not p.startswith((REPORT_PARAGRAPH_PREFIX, REPORT_PARAGRAPH_PREFIX.strip("*")))
    )
    user_note_text = "\n\n".join(user_paragraphs).strip("\n")
    while report_texts and len(note_text := "\n\n".join([*report_texts, user_note_text])) > MAX_NOTE_LENGTH:
        report_texts.pop()
    if report_texts:
        mlflow_client.set_experiment_tag(experiment_id, NOTE_TAG, note_text)


def _make_paragraph(experiment_id: str, report_run_id: str, report_tags: Mapping[str, str]) -> str:
    """Return the paragraph of a report: the verdict first, because MLflow shows only two lines of a folded note.

    Args:
        experiment_id: id of the experiment.
        report_run_id: id of the report's run.
        report_tags: tags of the report's run.
    """
    page_name, verdict, sweep_id, options_text, report_date = (
        report_tags.get(t, "") for t in (PAGE_TAG, VERDICT_TAG, SWEEP_TAG, OPTIONS_TAG, DATE_TAG)
    )
    answer_link = (
        f"{REPORT_PARAGRAPH_PREFIX}{format_artifact_url(experiment_id, report_run_id, page_name)})**: {verdict}"
    )
    sweep_link = f"[sweep {sweep_id}]({format_runs_page_url(experiment_id, sweep_id)})" if sweep_id else ""
    report_facts = [t for t in (sweep_link, report_date, f"`{options_text}`" if options_text else "") if t]
    return f"{answer_link} ({', '.join(report_facts)})" if report_facts else answer_link


def _make_view(view_name: str, view_changes: Mapping[str, Any]) -> str:
    """Return a view of runs in MLflow's form.

    Args:
        view_name: title of the view.
        view_changes: differences to the view of all runs.
    """
    now_ms, view_state = time.time_ns() // 1_000_000, json.loads(ALL_RUNS_FILE.read_text()) | view_changes
    return json.dumps({"name": view_name, "createdAt": now_ms, "updatedAt": now_ms, "state": json.dumps(view_state)})
