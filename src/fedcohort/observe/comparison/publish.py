"""An answer's way into MLflow: what its report's run is called, is about, and says."""

from collections.abc import Sequence
from pathlib import Path

from fedcohort.errors import TrackingError
from fedcohort.observe.comparison import page, render, render_target, verdict
from fedcohort.observe.comparison.files import PAGE, list_beside
from fedcohort.observe.comparison.question import Answer
from fedcohort.tracking import report, server

ALL = "all runs"


def publish(answer: Answer, files: Sequence[Path]) -> str:
    """Make or rewrite the report's run, and return how it is found. Raises `TrackingError`."""
    query = answer.question.query
    table = answer.table
    times = [render_target.markdown(answer.times)] if answer.times is not None else []
    made = report.Report(
        name=f"report: {page.name(answer)}",
        sweep=query.sweep,
        about=query.sweep or query.filter or ALL,
        verdict=" ".join(verdict.tell(table)) or f"{page.name(answer)}, without a verdict",
        note="\n".join([*times, render.markdown(table, list_beside(answer))]),
        files=sorted(files, key=lambda file: file.name != PAGE),
    )
    where = server.place(query.tracking_uri, query.experiment, Path("logs"))
    try:
        id = report.publish(made, where)
    except server.failures() as error:
        raise TrackingError(f"MLflow at {query.tracking_uri} can't be written ({server.reason(error)})") from error
    return f"{made.name} ({id[:8]})"
