"""The result of a run: `summary.json` for programs, a table for people."""

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from fedcohort import ranges, units
from fedcohort.console.terminal import is_progress_only, make_console
from fedcohort.record.folder import write_atomically
from fedcohort.record.history import read_history, require_journal
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.results.summary import summarise_run
from fedcohort.results.summary_rows import list_brief_rows, list_further_rows

log = logging.getLogger("fedcohort")
SUMMARY_FILE, FULL_OPTION = "summary.json", "callback.summary.full=true"


class Summary(Observer):
    """An observer that writes and prints the results of a run, read from its journal, when the run ends.

    Args:
        full: whether the printed table has all rows, or only the most important ones.

    Raises:
        OptionError: `full` is neither true nor false.
    """

    def __init__(self, *, full: bool) -> None:
        ranges.flag("full", full)
        self._is_full = full
        self._run_info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Store the metadata `info` of the run. Raises `IncompatibleConfig` if no journal is written."""
        require_journal(info.folder, "callback.summary")
        self._run_info = info

    def finish(self, status: str) -> None:
        """Write `summary.json`, and print a table of it, unless no round was trained or only progress is printed.

        Args:
            status: how the run ended, such as "finished" or "interrupted".
        """
        if self._run_info is None or status == "dropped":
            return
        summary = summarise_run(self._run_info, read_history(self._run_info.folder), status)
        for run_warning in summary["warnings"]:
            log.warning("%s", run_warning)
        summary_text = json.dumps(_replace_nan(summary), indent=1, default=str) + "\n"
        write_atomically(self._run_info.folder / SUMMARY_FILE, summary_text)
        if summary["rounds"] and not is_progress_only():
            print_summary(summary, shows_all_rows=self._is_full)


def print_summary(summary: Mapping[str, Any], *, shows_all_rows: bool) -> None:
    """Print the results of a run as a table.

    Args:
        summary: content of `summary.json`.
        shows_all_rows: whether to print all rows, or only the most important ones.
    """
    from rich.table import Column, Table

    rounds_done, total_rounds = summary["rounds"], summary["rounds_asked"]
    result_table = Table("result", Column("value", justify="right"))
    for row_label, value_text in list_brief_rows(summary):
        result_table.add_row(row_label, value_text)
    result_table.add_section()
    further_rows = list_further_rows(summary)
    for row_label, value_text in (
        further_rows if shows_all_rows else [(f"{units.format_count(len(further_rows), 'line')} more", FULL_OPTION)]
    ):
        result_table.add_row(row_label, value_text)
    console = make_console()
    end_text = (
        f"{summary['name']}: {summary['status']} after {rounds_done} of {units.format_count(total_rounds, 'round')}"
    )
    console.print(f"{end_text}: {summary['end']}" if summary["end"] else end_text, soft_wrap=True, markup=False)
    console.print(result_table)
    console.print(f"folder  {summary['folder']}", soft_wrap=True, markup=False)


def _replace_nan(json_value: object) -> object:
    """Return a JSON value with the numbers in it that are not finite replaced by None."""
    if isinstance(json_value, Mapping):
        return {k: _replace_nan(nested_value) for k, nested_value in json_value.items()}
    if isinstance(json_value, list):
        return [_replace_nan(nested_value) for nested_value in json_value]
    return None if isinstance(json_value, float) and not math.isfinite(json_value) else json_value
