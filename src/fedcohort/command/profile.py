"""Measure where a round's time goes, stage by stage.

    fedcohort profile selector=flash rounds=20

The options are those of train.py. The run is a real one, in a folder that is deleted at its end. The row "rest" holds
Lightning's loop and the time between stages.
"""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fedcohort import ranges
from fedcohort.host import messages
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.startup import compose, run
from fedcohort.types import RoundReport


@dataclass
class StageTimes:
    """Times of the rounds. The first round is left out: it pays for caches and imports.

    Attributes:
        reported_s: host seconds at which rounds were reported, step 0 first.
        stage_s: seconds of all counted rounds, by stage.
    """

    reported_s: list[float] = field(default_factory=list)
    stage_s: dict[str, float] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Number of rounds that count."""
        return len(self.reported_s) - 2

    @property
    def wall_s(self) -> float:
        """Seconds of the rounds that count."""
        return self.reported_s[-1] - self.reported_s[1]


class StageTimer(Observer):
    """An observer that writes `StageTimes` into the file `path`; the rounds may be in another process."""

    def __init__(self, path: str) -> None:
        self.path, self.times = Path(path), StageTimes()

    def start(self, info: RunInfo) -> None:
        """Do nothing: step 0 is reported first."""

    def observe(self, report: RoundReport) -> None:
        self.times.reported_s.append(time.perf_counter())
        if report.step > 1:
            for stage, seconds in report.wall_s.items():
                self.times.stage_s[stage] = self.times.stage_s.get(stage, 0.0) + seconds

    def finish(self, status: str) -> None:
        self.path.write_text(json.dumps(asdict(self.times)))


def measure(words: Sequence[str], configs: Path) -> StageTimes:
    """Return the times of a run of `words`, whose folder is removed. Raises `OptionError` for a single round."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.json"
        timer = ("+callback.timer._target_=fedcohort.command.profile.StageTimer", f"+callback.timer.path={path}")
        composition = compose.compose_run(
            ["callback=none", "logger=none", *words], configs, f"paths.logs={folder}", *timer
        )
        ranges.integer("rounds", composition.config["rounds"], "[2, inf)")
        run.run(composition)
        return StageTimes(**json.loads(path.read_text()))


def main(words: Sequence[str]) -> int:
    """Measure a run with the options in `words`, and print the table."""
    from rich.console import Console
    from rich.table import Table

    messages.to_terminal()
    times = measure(words, Path.cwd() / "configs")
    rounds, wall_s = times.rounds, times.wall_s
    stage_s = {**times.stage_s, "rest": max(0.0, wall_s - sum(times.stage_s.values()))}
    table = Table("stage", "ms a round", "share", title=f"{rounds} rounds, {1000 * wall_s / rounds:.1f} ms each")
    for name, seconds in stage_s.items():
        table.add_row(name, f"{1000 * seconds / rounds:.2f}", f"{100 * seconds / wall_s:.1f} %")
    Console().print(table)
    return 0
