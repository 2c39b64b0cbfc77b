"""Compare tracked runs: read them from MLflow, match and compare them, and publish the report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.host.time_limit import limit_block_time
from fedcohort.report.comparison import page
from fedcohort.results.frame import read_curves
from fedcohort.results.matching.match import match
from fedcohort.results.matching.question import ComparisonAnswer, ComparisonQuestion, answer_comparison_question
from fedcohort.tracking import report, runs, server
from fedcohort.tracking.runs import RunQuery


def compare_tracked_runs(
    run_query: RunQuery, question: ComparisonQuestion, wait_s: float = server.SWEEP_WAIT_S
) -> ComparisonAnswer:
    """Read runs from MLflow and compare them.

    Args:
        run_query: selects the runs.
        question: the comparison to make.
        wait_s: largest number of seconds to wait for MLflow.

    Raises:
        OptionError: the query or the question is invalid.
        TrackingError: MLflow fails or takes longer than `wait_s` seconds.
    """
    q = question
    reading_errors = server.explain_errors(f"MLflow at {run_query.tracking_uri} can't be read")
    with reading_errors, limit_block_time(wait_s, "reading the runs (wait_s)"):
        mlflow_client = runs.connect(run_query)
        run_query = runs.resolve_sweep(mlflow_client, run_query)
        matched_runs = match(runs.read_runs(mlflow_client, run_query), q.rows, q.cols, *q.metrics, baseline=q.baseline)
        metric_curves = runs.read_curves(mlflow_client, matched_runs.runs, q.metrics)
    run_source_text = (f"sweep {run_query.sweep}" if run_query.sweep else f"experiment {run_query.experiment}") + (
        f" with {run_query.filter}" if run_query.filter else ""
    )
    return answer_comparison_question(replace(q, source_text=run_source_text), matched_runs, metric_curves)


def compare_run_folders(
    folders: Sequence[Path], question: ComparisonQuestion, option_filters: Mapping[str, str]
) -> ComparisonAnswer:
    """Compare the runs in `folders`, without MLflow.

    Args:
        folders: folders of runs; unfinished runs are left out, with a notice.
        question: the comparison to make.
        option_filters: values that options of the compared runs must have, by name.

    Raises:
        OptionError: for an invalid question.
        CheckpointError: for a folder that holds no run.
        TrackingError: there is nothing to compare.
    """
    q, listed_runs = question, runs.read_folders(dict.fromkeys(map(Path.absolute, folders)))
    selected_runs = [run for run in listed_runs if all(run.find_value(k) == v for k, v in option_filters.items())]
    matched_runs = match(selected_runs, q.rows, q.cols, *q.metrics, baseline=q.baseline)
    return answer_comparison_question(
        q, matched_runs, read_curves([Path(run.id) for run in matched_runs.runs], q.metrics)
    )


def publish_comparison(
    comparison: ComparisonAnswer,
    run_query: RunQuery,
    attached_files: Sequence[Path],
    wait_s: float = server.SWEEP_WAIT_S,
) -> str:
    """Create or rewrite the MLflow run that shows a comparison's report, and return its name and id as a text.

    Args:
        comparison: result of the comparison.
        run_query: the query that selected the runs.
        attached_files: files to attach to the run.
        wait_s: largest number of seconds to find the sweep in MLflow, and again to send the report.

    Raises:
        TrackingError: MLflow fails, or one of these two steps takes longer than `wait_s` seconds.
    """
    with server.explain_errors(f"MLflow at {run_query.tracking_uri} can't be written"):
        with limit_block_time(wait_s, "finding the sweep (wait_s)"):
            run_query = runs.resolve_sweep(runs.connect(run_query), run_query)
        report_title = page.format_title(comparison)
        server_location = server.locate_server(run_query.tracking_uri, run_query.experiment, Path("logs"))
        with limit_block_time(wait_s, "sending the report (wait_s)"):
            id = report.publish_report(
                server_location,
                name=f"report: {report_title}",
                sweep=run_query.sweep,
                subject=run_query.sweep or run_query.filter or "all runs",
                verdict=(f"Of the runs with {run_query.filter}: " if run_query.filter else "")
                + (" ".join(page.list_verdicts(comparison)) or f"{report_title}, without a verdict"),
                note=page.to_markdown(comparison),
                files=sorted(attached_files, key=lambda attached_file: attached_file.name != page.PAGE_FILE),
            )
    return f"report: {report_title} ({id[:8]})"
