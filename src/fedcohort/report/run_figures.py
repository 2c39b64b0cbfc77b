"""Draw the figures of a run and write its page when it has ended, from its journal."""

import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.host.commands import fedcohort_command
from fedcohort.record import metadata
from fedcohort.record.history import History, read, require_journal
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.tags import SWEEPS
from fedcohort.report import choice, run_page
from fedcohort.report.figure import (
    correlations,
    curves,
    one_round,
    pace,
    partition,
    selection,
    selector_state,
    style,
    timeline,
)
from fedcohort.report.round_times import timed_steps
from fedcohort.types import RoundReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("fedcohort")
FOLDER = "figures"
PNG = ("png",)  # the format that the page shows


class Figures(Observer):
    """Draw the figures of a run, and write its page, `report.html`.

    Every run has the figures `accuracy`, `partition` and `selection`. Selectors with scores or a state also have
    `round`, `belief` and `following`. If virtual time passes, there are `pace` and `timeline`.

    Args:
        formats: `png`, and also `pdf` or `svg`, which scale without loss in a paper.
        always: whether they are drawn for every run. If not, they are drawn for runs outside of sweeps whose output
            is a terminal. A resumed run that has a page is also drawn again: its page would lack the new rounds.

    Raises:
        OptionError: an unknown format, or no `png`.
    """

    def __init__(self, formats: Sequence[str], always: bool) -> None:
        ranges.flag("always", always)
        self._formats, self._always = check_formats(formats), always
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Keep the run's metadata. Raises `IncompatibleConfig` without a journal."""
        require_journal(info.folder, "callback.figures")
        self._info = info

    def observe(self, report: RoundReport) -> None:
        """Do nothing: the figures read the journal."""

    def finish(self, status: str) -> None:
        """Draw the figures, unless the run failed, has no rounds, or is not to be drawn (`always`)."""
        if self._info is None or status in ("failed", "dropped"):
            return
        command = f"{fedcohort_command('figures')} {shlex.quote(str(self._info.folder))}"
        in_sweep, has_page = SWEEPS in self._info.tags, (self._info.folder / run_page.NAME).exists()
        if not (self._always or has_page or (sys.stdout.isatty() and not in_sweep)):
            if not in_sweep:
                log.info("figures and page: %s", command)
            return
        try:
            draw(self._info, status, self._formats)
        except (ValueError, LookupError, OSError) as error:  # a result without figures is better than none
            log.warning("no figures (%s); try again: %s", error, command)


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return the formats of figures. Raises `OptionError` for an unknown one, and without `png`."""
    allowed = f"a list of png and, if wanted, {' and '.join(style.FORMATS[1:])}"
    if isinstance(formats, str) or "png" not in formats or not set(formats) <= set(style.FORMATS):
        raise ranges.refuse("formats", allowed, formats)
    return tuple(formats)


def draw(info: RunInfo, status: str | None = None, formats: Sequence[str] = PNG) -> list[Path]:
    """Draw the figures that there is data for, write the page, and return the files.

    Args:
        info: the run.
        status: how the run ended; None for the status in its folder.
        formats: suffixes of the figures' files.
    """
    history, folder = _open(info)
    draws = {
        "accuracy": curves.draw,
        "selection": selection.draw,
        "round": one_round.draw,
        "belief": selector_state.draw,
        "following": correlations.draw,
        "pace": pace.draw,
        "timeline": timeline.draw,
    }
    figures = {"partition": partition.draw(info), **{name: draw(info, history) for name, draw in draws.items()}}
    files = _save(figures, folder, formats)
    return [*files, run_page.write(info, history, files, status)]


def redraw(folder: Path, formats: Sequence[str] = PNG) -> list[Path]:
    """Draw the figures of the run in `folder` again. Raises `CheckpointError` if it holds no run."""
    return draw(metadata.load_info(folder), formats=formats)


def explain(folder: Path, step: int, formats: Sequence[str] = PNG) -> list[Path]:
    """Draw the selection and the timeline of round `step` of the run in `folder`, and return the files.

    Raises `OptionError` if the round has neither, and `CheckpointError` if the folder holds no run.
    """
    info = metadata.load_info(folder)
    history, figures = _open(info)
    scored, timed = choice.explain(history), timed_steps(history)
    if timed and step not in (*scored, *timed):
        raise ranges.refuse("round", f"one of the rounds that trained clients, {one_round.list_steps(timed)}", step)
    clock = timeline.draw(info, history, step)
    selected = one_round.draw(info, history, step) if step in scored or clock is None else None
    return _save({f"round-{step}": selected, f"timeline-{step}": clock}, figures, formats)


def _save(figures: "dict[str, Figure | None]", folder: Path, formats: Sequence[str]) -> list[Path]:
    paths = [
        style.save(figure, folder / f"{name}.png", formats) for name, figure in figures.items() if figure is not None
    ]
    return [path for files in paths for path in files]


def _open(info: RunInfo) -> tuple[History, Path]:
    """Return the journal, and the folder of the figures, which is created."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it logs every font that it reads
    history, folder = read(info.folder), info.folder / FOLDER
    if folder.is_symlink():
        raise OptionError(f"{folder} is a link to another folder, to which nothing is written: remove it")
    folder.mkdir(exist_ok=True)
    return history, folder
