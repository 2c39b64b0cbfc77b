"""Progress of a run: a bar on a terminal or in a notebook, plain lines elsewhere, and before them a table of facts."""

import math
import time
from html import escape
from typing import TYPE_CHECKING, Any

from fedcohort import ranges, units
from fedcohort.console.terminal import console, is_brief
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.types import RoundReport

if TYPE_CHECKING:
    from rich.console import Console

UNFOLDED_FACTS = ("folder", "tracking")  # a path and a command, which are copied
METRICS = ("test/acc", "test/loss", "time/virtual_s")
HTML_BAR = '<progress value="{done}" max="{total}"></progress> round {done}/{total}&emsp;{facts}'
BRIEF_LINES = 5  # of a run, where the output is no terminal


class Progress(Observer):
    """Show the progress of a run.

    Attributes:
        lines_every: rounds between plain lines, where the output is no terminal.
    """

    def __init__(self, *, lines_every: int) -> None:
        ranges.integer("lines_every", lines_every, "[1, inf)")
        self._lines_every = lines_every
        self._rounds = self._first = 0
        self._metrics: dict[str, float] = {}
        self._evaluated = 0  # the round that measured the accuracy
        self._began_s = time.monotonic()
        self._console: Console | None = None
        self._bar: TerminalBar | NotebookBar | None = None

    def start(self, info: RunInfo) -> None:
        """Print the table of facts and open the bar."""
        self._rounds, self._first, self._began_s = info.rounds, info.start, time.monotonic()
        self._console = console()
        if is_brief():
            self._lines_every = max(self._lines_every, math.ceil(info.rounds / BRIEF_LINES))
        else:
            show_start(self._console, info)
        if self._console.is_jupyter:
            self._bar = NotebookBar(info.rounds, info.start)
        elif self._console.is_terminal:
            self._bar = TerminalBar(self._console, info.rounds, info.start)

    def observe(self, report: RoundReport) -> None:
        """Show that a round has ended. A metric that this round did not measure keeps its last value."""
        self._metrics.update({name: report.metrics[name] for name in METRICS if name in report.metrics})
        if METRICS[0] in report.metrics:
            self._evaluated = report.step
        if self._bar is not None:
            self._bar.update(report.step, self._describe(report.step))
        elif report.step % self._lines_every == 0 or report.step == self._rounds:
            self._print(f"round {report.step}/{self._rounds}  {progress_facts(report, self._metrics, self._evaluated)}")

    def finish(self, status: str) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _describe(self, step: int) -> str:
        """Format the numbers of the bar in 80 columns: `accuracy 0.873  simulated 21 min  elapsed 9 s`."""
        elapsed_s = time.monotonic() - self._began_s
        parts = [f"accuracy {self._metrics['test/acc']:.3f}"] if "test/acc" in self._metrics else []
        if "time/virtual_s" in self._metrics:
            parts.append(f"simulated {units.rough_seconds(self._metrics['time/virtual_s'])}")
        parts.append(f"elapsed {units.rough_seconds(elapsed_s)}")
        if self._first < step < self._rounds:
            parts.append(f"left {units.rough_seconds(elapsed_s * (self._rounds - step) / (step - self._first))}")
        return "  ".join(parts)

    def _print(self, text: str) -> None:
        if self._console is None:
            raise RuntimeError("observe before start")
        self._console.print(text, soft_wrap=True, markup=False)
        self._console.file.flush()  # a log file is read while it grows


def progress_facts(report: RoundReport, metrics: dict[str, float], evaluated: int) -> str:
    """Format a round in one line: `cohort 10 arrived 10  test/acc 0.873  test/loss 0.41  virtual 20 min 34 s`.

    Args:
        report: the round.
        metrics: the last value of each metric.
        evaluated: the round that measured them, which is named where it is an earlier one.
    """
    origin = "" if evaluated == report.step else f" of round {evaluated}"
    parts = [f"cohort {len(report.cohort)} arrived {len(report.arrived)}"]
    parts += [f"{name} {metrics[name]:.3g}{origin}" for name in ("test/acc", "test/loss") if name in metrics]
    if "time/virtual_s" in metrics:
        parts.append(f"virtual {units.seconds(metrics['time/virtual_s'])}")
    return "  ".join(parts)


def show_start(out: "Console", info: RunInfo) -> None:
    """Print the composed choices, the partition, the number of parameters, and the run's folder."""
    lines = list_run_facts(info)
    if not out.is_terminal:  # no padding, no folding: a log file's lines can be copied
        for label, value in [("", info.name), *lines]:
            out.print(f"{label:<12}{value}".strip(), markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for label, value in lines:
        if label not in UNFOLDED_FACTS:
            table.add_row(f"[bold]{label}[/bold]", value)
    out.print(info.name, style="italic", soft_wrap=True, markup=False)
    out.print(table)
    for label, value in lines:
        if label in UNFOLDED_FACTS:
            out.print(Text.assemble((f"{label:<12}", "bold"), value), soft_wrap=True)


class TerminalBar:
    """A progress bar on a terminal, with metrics, elapsed time and time left."""

    def __init__(self, out: "Console", total: int, done: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(
            TextColumn("round"),
            MofNCompleteColumn(),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[facts]}"),
            console=out,
            refresh_per_second=4,  # a higher rate would take time from short rounds
        )
        self._task = self._bar.add_task("", total=total, completed=done, facts="")
        self._bar.start()

    def update(self, done: int, facts: str) -> None:
        """Show that `done` rounds are done."""
        self._bar.update(self._task, completed=done, facts=facts)

    def stop(self) -> None:
        """Draw the bar for the last time."""
        self._bar.stop()


class NotebookBar:
    """A progress bar below a notebook's cell."""

    def __init__(self, total: int, done: int) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415 - installed in notebooks only

        self._html: Any = HTML
        self._total = total
        self._line: Any = display(HTML(self._text(done, "")), display_id=True)

    def update(self, done: int, facts: str) -> None:
        """Show that `done` rounds are done."""
        self._line.update(self._html(self._text(done, facts)))

    def stop(self) -> None:
        """Do nothing: the line stays."""

    def _text(self, done: int, facts: str) -> str:
        return HTML_BAR.format(done=done, total=self._total, facts=escape(facts))
