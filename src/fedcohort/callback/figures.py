"""The figures of a run, drawn once it has ended, from the journal: a resumed run's are whole."""

import logging
import shlex
from pathlib import Path

from fedcohort.callback import card
from fedcohort.callback.base import RunInfo
from fedcohort.callback.figure import belief, curves, partition, selection
from fedcohort.callback.history import expect, read
from fedcohort.commands import command
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
FOLDER = "figures"


class Figures:
    """Draws accuracy.png, partition.png, selection.png and, where the selector has one, belief.png."""

    def __init__(self) -> None:
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Keep what the figures say about the run. Raises `IncompatibleConfig` where there is no journal."""
        expect(info.folder, "callback.figures")
        self._info = info

    def observe(self, report: RoundReport) -> None:
        """Nothing: the journal has it."""

    def finish(self, status: str) -> None:
        """Draw, unless the run failed or trained nothing."""
        if self._info is None or status in ("failed", "dropped"):
            return
        try:
            draw(self._info)
        except (ValueError, LookupError, OSError) as error:  # a result without figures is better than none
            again = f"{command('python')} -m fedcohort.figures {shlex.quote(str(self._info.folder))}"
            log.warning("no figures (%s); try again: %s", error, again)


def draw(info: RunInfo) -> list[Path]:
    """Draw what there is data for; returns the files."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font it looks at
    history = read(info.folder)
    folder = info.folder / FOLDER
    folder.mkdir(exist_ok=True)
    partition.draw(info, folder / "partition.png")
    drawn = {
        "accuracy.png": curves.draw(info, history, folder / "accuracy.png"),
        "partition.png": True,
        "selection.png": selection.draw(info, history, folder / "selection.png"),
        "belief.png": belief.draw(info, history, folder / "belief.png"),
    }
    return [folder / name for name, done in drawn.items() if done]


def redraw(folder: Path) -> list[Path]:
    """The figures of the run in `folder`. Raises `CheckpointError` where it holds none."""
    return draw(card.load(folder))
