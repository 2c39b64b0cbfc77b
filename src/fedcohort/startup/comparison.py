"""Compare tracked runs: read them from MLflow, match and compare them, and publish the report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import TrackingError
from fedcohort.host.time_limit import time_limit
from fedcohort.report.comparison import page
from fedcohort.results.frame import read_curves
from fedcohort.results.matching.match import match
from fedcohort.results.matching.question import Answer, Question, answer_question
from fedcohort.tracking import report, runs, server
from fedcohort.tracking.runs import RunQuery

ALL_RUNS = "all runs"


def read_answer(query: RunQuery, question: Question, wait_s: float = server.SWEEP_WAIT_S) -> Answer:
    """Read the runs of `query` from MLflow and compare them as `question` asks.

    Raises `OptionError`; `TrackingError` where MLflow fails or takes longer than `wait_s` seconds.
    """
    q = question
    try:
        with time_limit(wait_s, "reading the runs (wait_s)"):
            client = runs.connect(query)
            query = runs.resolve_sweep(client, query)
            matched_runs = match(runs.read_runs(client, query), q.rows, q.cols, *q.metrics, baseline=q.baseline)
            curves = runs.read_curves(client, matched_runs.runs, q.metrics)
    except server.expected_errors() as error:
        raise TrackingError(f"MLflow at {query.tracking_uri} can't be read ({server.root_cause(error)})") from error
    source = f"sweep {query.sweep}" if query.sweep else f"experiment {query.experiment}"
    return answer_question(replace(q, source=source), matched_runs, curves)


def answer_folders(folders: Sequence[Path], question: Question, conditions: Mapping[str, str] | None = None) -> Answer:
    """Compare the runs in `folders`, without MLflow.

    Args:
        folders: folders of finished runs; other folders are left out, with a notice.
        question: the comparison to make.
        conditions: values that options of the compared runs must have, by name; None for all runs.

    Raises:
        OptionError: for an invalid question.
        CheckpointError: for a folder that holds no run.
        TrackingError: if there is nothing to compare.
    """
    q, paths = question, {path.name: path for path in map(Path.absolute, folders)}
    required_values = (conditions or {}).items()
    compared = [run for run in runs.read_folders(paths.values()) if all(run.fact(k) == v for k, v in required_values)]
    matched_runs = match(compared, q.rows, q.cols, *q.metrics, baseline=q.baseline)
    return answer_question(q, matched_runs, read_curves([paths[run.id] for run in matched_runs.runs], q.metrics))


def publish(result: Answer, query: RunQuery, files: Sequence[Path], wait_s: float = server.SWEEP_WAIT_S) -> str:
    """Create or rewrite the report's run in MLflow, and return its name and id.

    Raises `TrackingError` if MLflow fails or takes longer than `wait_s` seconds.
    """
    try:
        with time_limit(wait_s, "finding the sweep (wait_s)"):
            query = runs.resolve_sweep(runs.connect(query), query)
        title, server_place = (
            page.format_title(result),
            server.locate(query.tracking_uri, query.experiment, Path("logs")),
        )
        with time_limit(wait_s, "sending the report (wait_s)"):
            id = report.publish_report(
                server_place,
                name=f"report: {title}",
                sweep=query.sweep,
                about=query.sweep or query.filter or ALL_RUNS,
                verdict=" ".join(page.list_verdicts(result)) or f"{title}, without a verdict",
                note=page.to_markdown(result),
                files=sorted(files, key=lambda file: file.name != page.PAGE_FILE),
            )
    except server.expected_errors() as error:
        raise TrackingError(f"MLflow at {query.tracking_uri} can't be written ({server.root_cause(error)})") from error
    return f"report: {title} ({id[:8]})"
