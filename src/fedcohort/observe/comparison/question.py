"""What is asked of runs that MLflow knows, and the answer: read, sorted, averaged and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedcohort.errors import TrackingError
from fedcohort.observe.comparison import beside, fetch, goals, runs, series, target
from fedcohort.observe.comparison.beside import Costs
from fedcohort.observe.comparison.cells import Cell
from fedcohort.observe.comparison.runs import Sorted
from fedcohort.observe.comparison.series import Series
from fedcohort.observe.comparison.table import Table, sign_of, tabulate
from fedcohort.observe.comparison.target import TargetTable
from fedcohort.tracking import server


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        query: which runs.
        rows: a parameter or tag, down the table.
        cols: another one across it, None for a single column.
        metrics: the first is the headline, which the verdict is about; the others stand beside it.
        baseline: a value of rows (or of cols), None without one.
        better: of the headline: high, low, or auto by its name.
        target: None, a number, or `best_of:` and words.
        axis: what the time to the target is measured in.
        curves: whether they are drawn.
    """

    query: fetch.Query
    rows: str = "selector"
    cols: str | None = None
    metrics: Sequence[str] = ("test/acc",)
    baseline: str | None = None
    better: str = "auto"
    target: str | None = None
    axis: str = "virtual_s"
    curves: bool = True


@dataclass(frozen=True)
class Answer:
    """What came out.

    Attributes:
        found: the runs, in their cells.
        table: of the headline.
        others: a table for each other metric.
        costs: what was spent by the end.
        histories: of the headline, by cell and seed; none where nobody asked for curves or times.
        times: to the target, None without one.
    """

    question: Question
    found: Sorted
    table: Table
    others: Sequence[Table]
    costs: Costs
    histories: Mapping[Cell, Mapping[int, Series]]
    times: TargetTable | None

    @property
    def goal(self) -> float | None:
        """The target, where it is one number."""
        q = self.question
        wanted = goals.parse(q.target, q.metrics[0]) if q.target is not None else None
        return wanted if isinstance(wanted, float) else None


def answer(question: Question) -> Answer:
    """Read the runs and compare them. Raises `OptionError`, `TrackingError`."""
    q = question
    try:
        client = fetch.connect(q.query)
        q = replace(q, query=fetch.resolve(client, q.query))
        found = runs.sort(fetch.fetch(client, q.query), q.rows, q.cols, *q.metrics)
        table, *others = (
            tabulate(found, q.rows, q.cols, metric, q.baseline, q.better if metric == q.metrics[0] else "auto")
            for metric in q.metrics
        )
        histories = series.fetch(client, found, q.metrics[0]) if q.curves or q.target is not None else {}
    except server.failures() as error:
        raise TrackingError(f"MLflow at {q.query.tracking_uri} can't be read ({server.reason(error)})") from error
    times = None
    if q.target is not None:
        names = (q.rows, q.cols, q.metrics[0])
        sign = sign_of(q.better, q.metrics[0])
        times = target.tabulate(found, histories, names, q.target, q.axis, q.baseline, sign)
    return Answer(q, found, table, others, beside.count_costs(found, q.baseline), histories, times)
