"""Progress of a run: a bar on a terminal or in a notebook, plain lines elsewhere, and before them a table of facts."""

import math
import time
from html import escape
from typing import TYPE_CHECKING, Any

from fedcohort import ranges, units
from fedcohort.console.terminal import is_progress_only, make_console
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.types import RoundReport

if TYPE_CHECKING:
    from rich.console import Console

FACTS_WITHOUT_LINE_BREAKS = ("folder", "tracking")  # a path and a command, which are copied
SHOWN_METRICS = ("test/acc", "test/loss", "time/virtual_s")
HTML_BAR_TEMPLATE = '<progress value="{done}" max="{total}"></progress> round {done}/{total}&emsp;{facts}'
MAX_PROGRESS_LINES = 5  # of a run, where the output is no terminal


class Progress(Observer):
    """An observer that shows the progress of a run on the terminal or in a notebook.

    Args:
        lines_every: rounds between plain lines, where the output is no terminal; 1 or more.

    Raises:
        OptionError: `lines_every` is out of range.
    """

    def __init__(self, *, lines_every: int) -> None:
        ranges.integer("lines_every", lines_every, "[1, inf)")
        self._lines_every = lines_every
        self._total_rounds = self._first_round = 0
        self._latest_metrics: dict[str, float] = {}
        self._evaluated_round = 0  # the round that measured the accuracy
        self._start_s = time.monotonic()
        self._console: Console  # of `start`
        self._progress_bar: TerminalBar | NotebookBar | None = None

    def start(self, info: RunInfo) -> None:
        """Print the table of facts of a run, given its metadata `info`, and open the progress bar."""
        self._total_rounds, self._first_round, self._start_s = info.rounds, info.start, time.monotonic()
        self._console = make_console()
        if is_progress_only():
            self._lines_every = max(self._lines_every, math.ceil(info.rounds / MAX_PROGRESS_LINES))
        else:
            print_start_table(self._console, info)
        if self._console.is_jupyter:
            self._progress_bar = NotebookBar(info.rounds, info.start)
        elif self._console.is_terminal:
            self._progress_bar = TerminalBar(self._console, info.rounds, info.start)

    def observe(self, report: RoundReport) -> None:
        """Show the round of `report`. A metric that this round did not measure keeps its last value."""
        self._latest_metrics.update({n: report.metrics[n] for n in SHOWN_METRICS if n in report.metrics})
        if SHOWN_METRICS[0] in report.metrics:
            self._evaluated_round = report.step
        if self._progress_bar is not None:
            self._progress_bar.update(report.step, self._describe_round(report.step))
        elif report.step % self._lines_every == 0 or report.step == self._total_rounds:
            facts_text = list_progress_facts(report, self._latest_metrics, self._evaluated_round)
            self._console.print(f"round {report.step}/{self._total_rounds}  {facts_text}", soft_wrap=True, markup=False)
            self._console.file.flush()  # a log file is read while it grows

    def finish(self, status: str) -> None:
        """End the progress bar, if there is one; `status`, how the run ended, is not shown."""
        if self._progress_bar is not None:
            self._progress_bar.stop()

    def _describe_round(self, round_number: int) -> str:
        """Return the text of the bar for round `round_number`: `accuracy 0.873  virtual 21 min  elapsed 9 s`."""
        elapsed_s = time.monotonic() - self._start_s
        fact_texts = [f"accuracy {self._latest_metrics['test/acc']:.3f}"] if "test/acc" in self._latest_metrics else []
        if "time/virtual_s" in self._latest_metrics:
            fact_texts.append(f"virtual {units.format_rough_seconds(self._latest_metrics['time/virtual_s'])}")
        fact_texts.append(f"elapsed {units.format_rough_seconds(elapsed_s)}")
        if self._first_round < round_number < self._total_rounds:
            seconds_left = elapsed_s * (self._total_rounds - round_number) / (round_number - self._first_round)
            fact_texts.append(f"left {units.format_rough_seconds(seconds_left)}")
        return "  ".join(fact_texts)


def list_progress_facts(report: RoundReport, metrics: dict[str, float], evaluated_round: int) -> str:
    """Format a round in one line: `cohort 10 arrived 10  test/acc 0.873  test/loss 0.41  virtual 20 min 34 s`.

    Args:
        report: results of a round.
        metrics: the last value of each metric.
        evaluated_round: the round that measured accuracy and loss; the line names this round if it is an earlier one.
    """
    measured_round_text = "" if evaluated_round == report.step else f" of round {evaluated_round}"
    fact_texts = [f"cohort {len(report.cohort)} arrived {len(report.arrived)}"]
    fact_texts += [f"{n} {metrics[n]:.3g}{measured_round_text}" for n in ("test/acc", "test/loss") if n in metrics]
    if "time/virtual_s" in metrics:
        fact_texts.append(f"virtual {units.format_seconds(metrics['time/virtual_s'])}")
    return "  ".join(fact_texts)


def print_start_table(console: "Console", info: RunInfo) -> None:
    """Print the chosen components, the partition, the number of parameters, and the run's folder as a table.

    Args:
        console: Rich console to print to.
        info: metadata of the run.
    """
    label_value_pairs = list_run_facts(info)
    if not console.is_terminal:  # no padding, no folding: a log file's lines can be copied
        for fact_label, fact_text in [("", info.name), *label_value_pairs]:
            console.print(f"{fact_label:<12}{fact_text}".strip(), markup=False)
        return
    from rich.table import Table
    from rich.text import Text

    fact_table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for fact_label, fact_text in label_value_pairs:
        if fact_label not in FACTS_WITHOUT_LINE_BREAKS:
            fact_table.add_row(f"[bold]{fact_label}[/bold]", fact_text)
    console.print(info.name, style="italic", soft_wrap=True, markup=False)
    console.print(fact_table)
    for fact_label, fact_text in label_value_pairs:
        if fact_label in FACTS_WITHOUT_LINE_BREAKS:
            console.print(Text.assemble((f"{fact_label:<12}", "bold"), fact_text), soft_wrap=True)


class TerminalBar:
    """A progress bar on a terminal, with metrics, elapsed time and time left."""

    def __init__(self, console: "Console", total_rounds: int, rounds_done: int) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("round"),
            progress.MofNCompleteColumn(),
            progress.BarColumn(bar_width=8),
            progress.TextColumn("{task.fields[facts]}"),
            console=console,
            refresh_per_second=4,  # a higher rate would take time from short rounds
        )
        self._task_id = self._bar.add_task("", total=total_rounds, completed=rounds_done, facts="")
        self._bar.start()

    def update(self, rounds_done: int, progress_text: str) -> None:
        """Show `progress_text` and that `rounds_done` rounds are done."""
        self._bar.update(self._task_id, completed=rounds_done, facts=progress_text)

    def stop(self) -> None:
        """Draw the bar for the last time, and leave it on the screen."""
        self._bar.stop()


class NotebookBar:
    """A progress bar below a notebook's cell."""

    def __init__(self, total_rounds: int, rounds_done: int) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415 - installed in notebooks only

        self._html_class: Any = HTML
        self._total_rounds = total_rounds
        self._display_handle: Any = display(HTML(self._bar_html(rounds_done, "")), display_id=True)

    def update(self, rounds_done: int, progress_text: str) -> None:
        """Show `progress_text` and that `rounds_done` rounds are done."""
        self._display_handle.update(self._html_class(self._bar_html(rounds_done, progress_text)))

    def stop(self) -> None:
        """Leave the last progress line on the screen."""

    def _bar_html(self, rounds_done: int, progress_text: str) -> str:
        return HTML_BAR_TEMPLATE.format(done=rounds_done, total=self._total_rounds, facts=escape(progress_text))
