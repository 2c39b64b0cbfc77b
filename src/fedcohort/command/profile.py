"""Measure where a round's time goes, stage by stage.

    fedcohort profile selector=flash rounds=20

The options are those of train.py. The run is a real one, in a folder that is deleted at its end. The row "rest" holds
Lightning's loop and the time between stages.
"""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedcohort import ranges, units
from fedcohort.host import messages
from fedcohort.record.observer import Observer
from fedcohort.startup import compose, run
from fedcohort.types import RoundReport


class StageTimer(Observer):
    """An observer that writes the number of rounds, their wall time and the seconds of each stage into a file.

    The first round is left out, because it also fills caches and imports modules. Another process may execute
    the rounds.

    Args:
        path: path of the file.
    """

    def __init__(self, path: str) -> None:
        self._path, self._report_times_s, self._seconds_by_stage = Path(path), list[float](), Counter[str]()

    def observe(self, report: RoundReport) -> None:
        self._report_times_s.append(time.perf_counter())
        if report.step > 1:
            self._seconds_by_stage.update(report.wall_s)  # seconds, not counts

    def finish(self, status: str) -> None:
        wall_s = self._report_times_s[-1] - self._report_times_s[1]
        measured_times = {"rounds": len(self._report_times_s) - 2, "wall_s": wall_s, "stage_s": self._seconds_by_stage}
        self._path.write_text(json.dumps(measured_times))


def profile_run(arguments: Sequence[str], configs: Path) -> dict[str, Any]:
    """Return the measurements of `StageTimer` for a run with the overrides `arguments`; the run's folder is removed.

    `configs` is the folder of the config groups. Raises `OptionError` if `rounds` is below 2: one is not measured.
    """
    with tempfile.TemporaryDirectory() as temporary_folder:
        times_path = Path(temporary_folder) / "times.json"
        timer_overrides = (
            "+callback.timer._target_=fedcohort.command.profile.StageTimer",
            f"+callback.timer.path={times_path}",
        )
        overrides = ["callback=none", "logger=none", *arguments]
        composition = compose.compose_run(overrides, configs, f"paths.logs={temporary_folder}", *timer_overrides)
        ranges.integer("rounds", composition.config["rounds"], "[2, inf)")
        run.run(composition)
        return dict(json.loads(times_path.read_text()))


def main(arguments: Sequence[str]) -> int:
    """Measure a run with the options in `arguments`, print the time of each stage as a table, and return 0."""
    from rich.console import Console
    from rich.table import Table

    messages.log_to_terminal()
    measured_times = profile_run(arguments, Path.cwd() / "configs")
    n_rounds, wall_s = measured_times["rounds"], measured_times["wall_s"]
    seconds_by_stage = {**measured_times["stage_s"], "rest": max(0.0, wall_s - sum(measured_times["stage_s"].values()))}
    table = Table(
        "stage",
        "ms a round",
        "share",
        title=f"{units.format_count(n_rounds, 'round')}, {1000 * wall_s / n_rounds:.1f} ms each",
    )
    for stage_name, stage_seconds in seconds_by_stage.items():
        table.add_row(stage_name, f"{1000 * stage_seconds / n_rounds:.2f}", f"{100 * stage_seconds / wall_s:.1f} %")
    Console().print(table)
    return 0
