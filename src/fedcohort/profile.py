"""`python -m fedcohort.profile <overrides>`: where a round's time goes, stage by stage.

The run is a real one, in a folder that is thrown away; "rest" is Lightning's loop and what lies between the stages.
"""

import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir

from fedcohort import assemble, interrupt, messages, ranges, run
from fedcohort.refusals import in_one_line
from fedcohort.types import RoundReport


@dataclass
class Laps:
    """The stages of every round but the first, which pays for caches and imports, added up.

    ticks: host seconds at which rounds were reported. spent: seconds by stage.
    """

    ticks: list[float] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        return len(self.ticks) - 2

    @property
    def wall(self) -> float:
        return self.ticks[-1] - self.ticks[1]


class Lapper:
    """An observer that leaves `Laps` in the file `path`: it may watch in another process than the one that reads."""

    def __init__(self, path: str) -> None:
        self.path, self.laps = Path(path), Laps()

    def start(self, info: Any) -> None:
        """Nothing: the first tick is that of step 0."""

    def observe(self, report: RoundReport) -> None:
        self.laps.ticks.append(time.perf_counter())
        if report.step > 1:
            for stage, seconds in report.wall_s.items():
                self.laps.spent[stage] = self.laps.spent.get(stage, 0.0) + seconds

    def finish(self, status: str) -> None:
        self.path.write_text(json.dumps(asdict(self.laps)))


def measure(words: list[str], configs: Path) -> Laps:
    """Run `words` in a folder that is thrown away. Raises `OptionError` for a single round."""
    with tempfile.TemporaryDirectory() as folder, initialize_config_dir(str(configs), version_base="1.3"):
        path = Path(folder) / "laps.json"
        laps = ("+callback.laps._target_=fedcohort.profile.Lapper", f"+callback.laps.path={path}")
        extra = [f"paths.logs={folder}", *laps]
        cfg = compose("train", overrides=["callback=none", "logger=none", *words, *extra], return_hydra_config=True)
        made = assemble.composed(cfg, cfg.hydra.runtime.choices, tuple(words))
        ranges.integer("rounds", made.config["rounds"], "[2, inf)")
        run.run(made)
        return Laps(**json.loads(path.read_text()))


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
    typed = sys.argv[1:]
    called = partial(in_one_line, lambda: main(typed), typed, Path.cwd() / "configs")
    raise SystemExit(interrupt.ended(called))
