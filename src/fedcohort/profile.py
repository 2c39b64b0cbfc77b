"""`python -m fedcohort.profile <overrides>`: where a round's time goes, stage by stage.

The run is a real one, in a folder that is thrown away; "rest" is Lightning's loop and what lies between the stages.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir

from fedcohort import assemble, interrupt, messages, ranges, run
from fedcohort.refusals import in_one_line
from fedcohort.types import RoundReport


class Laps:
    """An observer that adds up the stages of every round but the first, which pays for caches and imports."""

    latest: "Laps"

    def start(self, info: Any) -> None:
        Laps.latest = self
        self.ticks: list[float] = []
        self.spent: dict[str, float] = {}

    def observe(self, report: RoundReport) -> None:
        self.ticks.append(time.perf_counter())
        if report.step > 1:
            for stage, seconds in report.wall_s.items():
                self.spent[stage] = self.spent.get(stage, 0.0) + seconds

    def finish(self, status: str) -> None:
        """Nothing: the table is made of what was added up."""

    @property
    def rounds(self) -> int:
        return len(self.ticks) - 2

    @property
    def wall(self) -> float:
        return self.ticks[-1] - self.ticks[1]


def measure(words: list[str], configs: Path) -> Laps:
    """Run `words` in a folder that is thrown away. Raises `OptionError` for a single round."""
    with tempfile.TemporaryDirectory() as folder, initialize_config_dir(str(configs), version_base="1.3"):
        extra = [f"paths.logs={folder}", "+callback.laps._target_=fedcohort.profile.Laps"]
        cfg = compose("train", overrides=["callback=none", "logger=none", *words, *extra], return_hydra_config=True)
        made = assemble.composed(cfg, cfg.hydra.runtime.choices, tuple(words))
        ranges.integer("rounds", made.config["rounds"], "[2, inf)")
        run.run(made)
    return Laps.latest


def main(words: list[str]) -> None:
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


if __name__ == "__main__":
    from fedcohort.profile import main as measured  # the module whose Laps the config names, not this __main__

    typed = sys.argv[1:]
    called = partial(in_one_line, lambda: measured(typed), typed, Path.cwd() / "configs")
    raise SystemExit(interrupt.ended(called))
