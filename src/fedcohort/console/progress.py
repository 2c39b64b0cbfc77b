"""How far a run is: a bar on a terminal, plain lines elsewhere, and before them one table of what was composed."""

from typing import TYPE_CHECKING

from fedcohort import ranges, units
from fedcohort.console.terminal import console
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.types import RoundReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

WHOLE = ("folder", "tracking")
SHOWN = ("test/acc", "test/loss", "time/virtual_s")


class Progress(Observer):
    """Shows how the run goes on.

    Attributes:
        lines_every: rounds between plain lines, where the output is no terminal.
    """

    def __init__(self, *, lines_every: int) -> None:
        ranges.integer("lines_every", lines_every, "[1, inf)")
        self._lines_every = lines_every
        self._rounds = 0
        self._seen: dict[str, float] = {}
        self._evaluated = 0
        self._console: Console | None = None
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def start(self, info: RunInfo) -> None:
        """Print the table; open the bar."""
        self._rounds = info.rounds
        self._console = console()
        show_start(self._console, info)
        if self._console.is_terminal:
            self._bar = _open_bar(self._console)
            self._task = self._bar.add_task("", total=info.rounds, completed=info.start, facts="")

    def observe(self, report: RoundReport) -> None:
        """Advance. A metric that this round did not measure keeps its last value."""
        self._seen.update({name: report.metrics[name] for name in SHOWN if name in report.metrics})
        if SHOWN[0] in report.metrics:
            self._evaluated = report.step
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=report.step, facts=short_facts(report, self._seen))
        elif report.step % self._lines_every == 0 or report.step == self._rounds:
            self._line(f"round {report.step}/{self._rounds}  {facts(report, self._seen, self._evaluated)}")

    def finish(self, status: str) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _line(self, text: str) -> None:
        if self._console is None:
            raise RuntimeError("observe before start")
        self._console.print(text, soft_wrap=True, markup=False)
        self._console.file.flush()  # a log file is read while it grows


def facts(report: RoundReport, before: dict[str, float], evaluated: int) -> str:
    """`cohort 10 arrived 10  test/acc 0.873  test/loss 0.41  virtual 20 min 34 s`.

    evaluated: the round that measured them, which is named where it is an earlier one.
    """
    of = "" if evaluated == report.step else f" of round {evaluated}"
    parts = [f"cohort {len(report.cohort)} arrived {len(report.arrived)}"]
    parts += [f"{name} {before[name]:.3g}{of}" for name in ("test/acc", "test/loss") if name in before]
    if "time/virtual_s" in before:
        parts.append(f"virtual {units.seconds(before['time/virtual_s'])}")
    return "  ".join(parts)


def short_facts(report: RoundReport, before: dict[str, float]) -> str:
    """`9/10 clients  acc 0.873  20 min 34 s`: beside the bar, 80 columns must do."""
    parts = [f"{len(report.arrived)}/{len(report.cohort)} clients"]
    parts += [f"acc {before['test/acc']:.3f}"] if "test/acc" in before else []
    parts += [units.seconds(before["time/virtual_s"])] if "time/virtual_s" in before else []
    return "  ".join(parts)


def show_start(out: "Console", info: RunInfo) -> None:
    """The composed choices, the partition, the number of parameters, and where to look."""
    if not out.is_terminal:  # no padding, no folding: a log file's lines can be copied
        for label, value in [("", info.name), *list_run_facts(info)]:
            out.print(f"{label:<12}{value}".strip(), markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    lines = list_run_facts(info)
    for label, value in lines:
        if label not in WHOLE:
            table.add_row(f"[bold]{label}[/bold]", value)
    out.print(info.name, style="italic", soft_wrap=True, markup=False)
    out.print(table)
    for label, value in lines:
        if label in WHOLE:  # a path or a command is copied: the terminal may fold it, we don't
            out.print(Text.assemble((f"{label:<12}", "bold"), value), soft_wrap=True)


def _open_bar(out: "Console") -> "Bar":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[facts]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=out,
        refresh_per_second=4,  # drawing more often would take time from short rounds
    )
    bar.start()
    return bar
