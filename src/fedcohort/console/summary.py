"""The result of a run: `summary.json` for programs, a table for people."""

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from fedcohort import ranges
from fedcohort.console.terminal import console, is_brief
from fedcohort.record.folder import write_atomically
from fedcohort.record.history import read, require_journal
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.results.summary import summarise
from fedcohort.results.summary_rows import more_rows, rows
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
SUMMARY_FILE = "summary.json"
FULL_OPTION = "callback.summary.full=true"


class Summary(Observer):
    """Write and print the summary when the run ends, however it ends; it is read from the journal.

    Attributes:
        full: whether the printed table has all rows, or only the most important ones.
    """

    def __init__(self, *, full: bool) -> None:
        ranges.flag("full", full)
        self._full = full
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Store the description of the run. Raises `IncompatibleConfig` if there is no journal."""
        require_journal(info.folder, "callback.summary")
        self._info = info

    def observe(self, report: RoundReport) -> None:
        """Do nothing: the summary is read from the journal."""

    def finish(self, status: str) -> None:
        """Write `summary.json`, and print the table of a run with rounds."""
        if self._info is None or status == "dropped":
            return
        summary = summarise(self._info, read(self._info.folder), status)
        for line in summary["warnings"]:
            log.warning("%s", line)
        write_atomically(self._info.folder / SUMMARY_FILE, json.dumps(_finite(summary), indent=1, default=str) + "\n")
        if summary["rounds"] and not is_brief():
            print_summary(summary, full=self._full)


def print_summary(summary: Mapping[str, Any], *, full: bool) -> None:
    """Print the table; full: with all of its rows."""
    from rich.table import Table

    done, total = summary["rounds"], summary["rounds_asked"]
    table = Table()
    table.add_column("result")
    table.add_column("value", justify="right")
    for label, value in rows(summary):
        table.add_row(label, value)
    table.add_section()
    further_rows = more_rows(summary)
    for label, value in further_rows if full else [(f"{len(further_rows)} lines more", FULL_OPTION)]:
        table.add_row(label, value)
    out = console()
    ended = f"{summary['name']}: {summary['status']} after {done} of {total} rounds"
    out.print(f"{ended}: {summary['end']}" if summary["end"] else ended, soft_wrap=True, markup=False)
    out.print(table)
    out.print(f"folder  {summary['folder']}", soft_wrap=True, markup=False)


def _finite(value: object) -> object:
    """Replace numbers that are not finite by None, since JSON cannot represent them."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
