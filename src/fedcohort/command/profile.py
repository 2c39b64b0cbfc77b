"""Measure where a round's time goes, stage by stage.

    fedcohort profile selector=flash rounds=20

The options are those of train.py. The run is a real one, in a folder that is deleted at its end; "rest" is Lightning's
loop and what lies between the stages.
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
class Laps:
    """The stages of every round but the first, which pays for caches and imports, added up.

    Attributes:
        ticks: host seconds at which rounds were reported.
        spent: seconds by stage.
    """

    ticks: list[float] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return len(self.ticks) - 2

    @property
    def wall(self) -> float:
        return self.ticks[-1] - self.ticks[1]


class Lapper(Observer):
    """An observer that leaves `Laps` in the file `path`: it may watch in another process than the one that reads."""

    def __init__(self, path: str) -> None:
        self.path, self.laps = Path(path), Laps()

    def start(self, info: RunInfo) -> None:
        """Do nothing: the first tick is that of step 0."""

    def observe(self, report: RoundReport) -> None:
        self.laps.ticks.append(time.perf_counter())
        if report.step > 1:
            for stage, seconds in report.wall_s.items():
                self.laps.spent[stage] = self.laps.spent.get(stage, 0.0) + seconds

    def finish(self, status: str) -> None:
        self.path.write_text(json.dumps(asdict(self.laps)))


def measure(words: Sequence[str], configs: Path) -> Laps:
    """Run `words` in a folder that is thrown away. Raises `OptionError` for a single round."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "laps.json"
        laps = ("+callback.laps._target_=fedcohort.command.profile.Lapper", f"+callback.laps.path={path}")
        composition = compose.run_of(["callback=none", "logger=none", *words], configs, f"paths.logs={folder}", *laps)
        ranges.integer("rounds", composition.config["rounds"], "[2, inf)")
        run.run(composition)
        return Laps(**json.loads(path.read_text()))


def main(words: Sequence[str]) -> int:
    """Measure a run with the options in `words`, and print the table."""
    from rich.console import Console
    from rich.table import Table

    messages.to_terminal()
    laps = measure(words, Path.cwd() / "configs")
    rounds, wall = laps.rounds, laps.wall
    spent = {**laps.spent, "rest": max(0.0, wall - sum(laps.spent.values()))}
    table = Table("stage", "ms a round", "share", title=f"{rounds} rounds, {1000 * wall / rounds:.1f} ms each")
    for name, seconds in spent.items():
        table.add_row(name, f"{1000 * seconds / rounds:.2f}", f"{100 * seconds / wall:.1f} %")
    Console().print(table)
    return 0
