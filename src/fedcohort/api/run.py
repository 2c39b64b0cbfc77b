"""`fedcohort.run`: train one run in this process, as `python train.py` does, and return its result."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.api.composing import find_configs, plain_errors
from fedcohort.api.tables import replace_data
from fedcohort.console import terminal
from fedcohort.host import messages
from fedcohort.host.interrupt import NOTHING, Stopped
from fedcohort.jobs.job import run_checked
from fedcohort.record import folder, history, metadata
from fedcohort.record.observer import RunInfo
from fedcohort.report import run_figures
from fedcohort.results.summary import summarise
from fedcohort.results.summary_rows import rows
from fedcohort.startup import command_line, compose
from fedcohort.startup.overrides import list_overrides

if TYPE_CHECKING:
    import pandas as pd

INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class RunResult:
    """What a run has left in its folder; its files are read when they are asked for.

    Attributes:
        folder: of the run; `docs/results.md` describes its files.
    """

    folder: Path

    @cached_property
    def info(self) -> RunInfo:
        """Options, seed, commit, and the size, classes and label noise of each client."""
        return metadata.load_info(self.folder)

    @cached_property
    def rounds(self) -> "pd.DataFrame":
        """One row a round (`step`; 0 is the untrained model) and one column a metric; NaN if it was not measured."""
        return self._history.metrics

    @cached_property
    def clients(self) -> "pd.DataFrame":
        """One row a round (`step`) and client that was selected, queried or measured in it."""
        return self._history.clients()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `summary.json`: last and best metrics, cost, fingerprint, versions."""
        ended_ms = self._history.times[-1] if self._history.times else None
        return summarise(self.info, self._history, self.status, ended_ms)

    @property
    def status(self) -> str:
        """`finished`, `interrupted` or `failed`."""
        return str(folder.status_of(self.folder).get("status", "running"))

    @property
    def accuracy(self) -> float:
        """The last test accuracy, in [0, 1]; NaN if none was measured."""
        return float(self.summary["final"].get(history.MAIN_METRIC, float("nan")))

    @property
    def fingerprint(self) -> str:
        """A hash of all selections and weights: equal for runs that are equal to the bit."""
        return str(self.summary["fingerprint"])

    def __repr__(self) -> str:
        summary = self.summary
        ended = f"{summary['status']} after {summary['rounds']} of {summary['rounds_asked']} rounds"
        lines = [f"{summary['name']}: {ended}"]
        lines += [f"  {label:<40}{value}" for label, value in rows(summary)]
        if self.status == "interrupted":
            lines.append("  run(..., resume=True) with the same options continues it")
        return "\n".join([*lines, f"  folder  {self.folder}"])

    def _repr_html_(self) -> str:
        if self.info.config["callback"].get("figures") and not (self.folder / run_figures.PAGE).exists():
            run_figures.redraw(self.folder)  # a run in a notebook has no terminal, and draws none at its end
        return run_figures.show_in_notebook(self.info, self.summary)

    @cached_property
    def _history(self) -> history.History:
        return history.read(self.folder)


def run(**options: object) -> RunResult:
    """Train one run as `python train.py` does, and return its result.

        run(selector="flash", agg="scaffold", rounds=20, client={"lr": 0.05}, **{"selector.lam": 2})

    Ctrl-C ends the run after the round: the result then has the rounds so far, and the same call with `resume=True`
    continues. A run that resumes a finished one returns that.

    Args:
        options: choices of groups and values of options, by name. A dict sets several options of a group or node.
            `model` may be a class or a function that makes an `nn.Module`. `dataset` may be a data frame, or a pair of
            arrays with samples and labels.

    Returns:
        The result, which reads the run's folder.

    Raises:
        FedcohortError: with the message that the command prints.
        KeyboardInterrupt: where Ctrl-C came before the first round had ended.
    """
    return run_overrides(list_overrides(replace_data(options)))


def run_overrides(words: Sequence[str]) -> RunResult:
    """Train the run of `python train.py <words>`, with the results and errors of `run`."""
    configs = find_configs()
    messages.to_terminal()
    with plain_errors(words, configs), terminal.print_progress_only():
        command_line.check_command_line(words, configs)
        try:
            return RunResult(run_checked(compose.compose_run(words, configs), None))
        except Stopped as stop:
            if stop.code != INTERRUPTED:
                raise
            return RunResult(stop.folder)
        except SystemExit as stop:
            if stop.code != INTERRUPTED:
                raise
            raise KeyboardInterrupt(NOTHING) from None
