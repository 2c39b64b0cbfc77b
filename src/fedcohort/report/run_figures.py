"""The figures and the page of a run, made once it has ended, from the journal: a resumed run's are whole."""

import logging
import shlex
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.host.commands import fedcohort
from fedcohort.ranges import refuse
from fedcohort.record import card
from fedcohort.record.history import History, expect, read
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.report import choice, run_page
from fedcohort.report.figure import (
    correlations,
    curves,
    one_round,
    pace,
    partition,
    selection,
    selector_state,
    timeline,
)
from fedcohort.report.round_times import timed_steps
from fedcohort.types import RoundReport

log = logging.getLogger("fedcohort")
FOLDER = "figures"


class Figures(Observer):
    """Draws the pictures of a run, accuracy.png, partition.png and selection.png, and writes its page, report.html.

    It draws round.png, of the last round in which clients were scored, belief.png and following.png, where there are
    any; where time passes, pace.png, and timeline.png of the last round in which somebody trained.
    """

    def __init__(self) -> None:
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Keep what the figures say about the run. Raises `IncompatibleConfig` where there is no journal."""
        expect(info.folder, "callback.figures")
        self._info = info

    def observe(self, report: RoundReport) -> None:
        """Do nothing: the journal has it."""

    def finish(self, status: str) -> None:
        """Draw, unless the run failed or trained nothing."""
        if self._info is None or status in ("failed", "dropped"):
            return
        try:
            draw(self._info, status)
        except (ValueError, LookupError, OSError) as error:  # a result without figures is better than none
            again = f"{fedcohort('figures')} {shlex.quote(str(self._info.folder))}"
            log.warning("no figures (%s); try again: %s", error, again)


def draw(info: RunInfo, status: str | None = None) -> list[Path]:
    """Draw what there is data for, and write the page; returns the files. status: None for what the folder says."""
    history, folder = _open(info)
    partition.draw(info, folder / "partition.png")
    jobs = {
        "accuracy.png": curves.draw(info, history, folder / "accuracy.png"),
        "partition.png": True,
        "selection.png": selection.draw(info, history, folder / "selection.png"),
        "round.png": one_round.draw(info, history, folder / "round.png"),
        "belief.png": selector_state.draw(info, history, folder / "belief.png"),
        "following.png": correlations.draw(info, history, folder / "following.png"),
        "pace.png": pace.draw(info, history, folder / "pace.png"),
        "timeline.png": timeline.draw(info, history, folder / "timeline.png"),
    }
    drawn = [folder / name for name, done in jobs.items() if done]
    return [*drawn, run_page.write(info, history, drawn, status)]


def redraw(folder: Path) -> list[Path]:
    """The figures of the run in `folder`. Raises `CheckpointError` where it holds none."""
    return draw(card.load(folder))


def explain(folder: Path, step: int) -> list[Path]:
    """Draw round `step` of the run in `folder`, its choice and its timeline; returns the files.

    Raises `OptionError` where that round has neither, `CheckpointError` where the folder holds no run.
    """
    info = card.load(folder)
    history, figures = _open(info)
    selected, clock = figures / f"round-{step}.png", figures / f"timeline-{step}.png"
    chosen, timed = choice.explain(history), timed_steps(history)
    if timed and step not in (*chosen, *timed):
        allowed = f"one of the rounds in which somebody trained, {one_round.list_steps(timed)}"
        raise refuse("round", allowed, step)
    drawn = [clock] if timeline.draw(info, history, clock, step) else []
    if step in chosen or not drawn:
        one_round.draw(info, history, selected, step)
        drawn = [selected, *drawn]
    return drawn


def _open(info: RunInfo) -> tuple[History, Path]:
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it tells of every font it looks at
    history, folder = read(info.folder), info.folder / FOLDER
    if folder.is_symlink():
        raise OptionError(f"{folder} is a link, and what it leads to is not written to: remove it")
    folder.mkdir(exist_ok=True)
    return history, folder
