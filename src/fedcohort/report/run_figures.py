"""The figures of a run and its page `report.html`, which are written at its end from the files of its folder."""

import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.host.commands import format_fedcohort_command
from fedcohort.record import metadata
from fedcohort.record.folder import read_status, write_atomically
from fedcohort.record.history import History, read_history, require_journal
from fedcohort.record.metadata import read_summary
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.record.tags import SWEEPS_TAG
from fedcohort.report.figure import curves, one_round, partition, selection, selector_state, style, timeline
from fedcohort.report.figure.timeline import list_timed_rounds
from fedcohort.report.render import Picture, render
from fedcohort.report.table import Table
from fedcohort.results.summary import summarise_run
from fedcohort.results.summary_rows import list_brief_rows, list_cost_rows
from fedcohort.round.score_correlation import METRIC_PREFIX

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger("fedcohort")
PAGE_FILE, FIGURES_FOLDER = "report.html", "figures"
PNG_FORMATS = ("png",)  # the format that the page shows


class Figures(Observer):
    """An observer that draws the figures of a run, and writes its page, `report.html`.

    Every run has the figures `accuracy`, `partition` and `selection`. Selectors with scores or a state also have
    `round`, `belief` and `following`. If virtual time passes, there are `pace` and `timeline`.

    Args:
        formats: formats of the figures: `png`, and also `pdf` or `svg`, which scale without loss in a paper.
        always: whether the figures are drawn for every run. If not, they are drawn for runs outside of sweeps whose
            output is a terminal. A resumed run that has a page is also drawn again: its page would lack the new rounds.

    Raises:
        OptionError: an unknown format, or no `png`.
    """

    def __init__(self, formats: Sequence[str], always: bool) -> None:
        ranges.flag("always", always)
        self._formats, self._always = check_figure_formats(formats), always
        self._info: RunInfo | None = None

    def start(self, info: RunInfo) -> None:
        """Store the run's metadata `info`; raise `IncompatibleConfig` without `callback.journal`, which is needed."""
        require_journal(info.folder, "callback.figures")
        self._info = info

    def finish(self, status: str) -> None:
        """Draw the figures, unless the run failed, has no rounds, or is not to be drawn (`always`).

        `status` says how the run ended, such as "finished".
        """
        if self._info is None or status in ("failed", "dropped"):
            return
        figures_command = f"{format_fedcohort_command('figures')} {shlex.quote(str(self._info.folder))}"
        is_in_sweep, has_page = SWEEPS_TAG in self._info.tags, (self._info.folder / PAGE_FILE).exists()
        if not (self._always or has_page or (sys.stdout.isatty() and not is_in_sweep)):
            if not is_in_sweep:
                log.info("draw the figures and the page with: %s", figures_command)
            return
        try:
            draw_run(self._info, status, self._formats)
        except (ValueError, LookupError, OSError) as error:  # a result without figures is better than none
            log.warning("the figures could not be drawn (%s); draw them with: %s", error, figures_command)


def check_figure_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return `formats`, suffixes of figure files; raise `OptionError` for an unknown one, and without `png`."""
    allowed_text = f"a list of png and, if wanted, {' and '.join(style.FILE_FORMATS[1:])}"
    if isinstance(formats, str) or "png" not in formats or not set(formats) <= set(style.FILE_FORMATS):
        raise ranges.range_error("formats", allowed_text, formats)
    return tuple(formats)


def draw_run(info: RunInfo, status: str | None = None, formats: Sequence[str] = PNG_FORMATS) -> list[Path]:
    """Draw the figures for which the run has data, write the page, and return the files.

    Args:
        info: the run.
        status: how the run ended; None for the status in its folder.
        formats: suffixes of the figures' files.
    """
    history, folder = _read_journal(info)
    figure_by_name = {
        "partition": partition.draw_partition(info),
        "accuracy": curves.draw_accuracy(info, history),
        "selection": selection.draw_selection(info, history),
        "round": one_round.draw_scored_round(info, history),
        "belief": selector_state.draw_selector_state(info, history),
        "following": selector_state.draw_correlations(info, history),
        "pace": curves.draw_round_lengths(info, history),
        "timeline": timeline.draw_timeline(info, history),
    }
    figure_files = _save_figures(figure_by_name, folder, formats)
    return [*figure_files, write_run_page(info, history, figure_files, status)]


def redraw_run(folder: Path, formats: Sequence[str] = PNG_FORMATS) -> list[Path]:
    """Draw the figures of the run in `folder` again and return the files; `formats` are their suffixes.

    Raises `CheckpointError` if the folder holds no run.
    """
    return draw_run(metadata.load_info(folder), formats=formats)


def draw_round(folder: Path, step: int, formats: Sequence[str] = PNG_FORMATS) -> list[Path]:
    """Draw the selection and the timeline of one round, and return the files.

    Args:
        folder: folder of the run.
        step: number of the round.
        formats: suffixes of the figures' files.

    Raises:
        OptionError: the round has neither a selection by scores nor a timeline.
        CheckpointError: the folder holds no run.
    """
    info = metadata.load_info(folder)
    history, figures = _read_journal(info)
    scored_rounds, timed_rounds = one_round.list_scored_rounds(history), list_timed_rounds(history)
    if timed_rounds and step not in (*scored_rounds, *timed_rounds):
        raise ranges.range_error(
            "round", f"one of the rounds that trained clients, {one_round.format_steps(timed_rounds)}", step
        )
    timeline_figure = timeline.draw_timeline(info, history, step)
    selection_figure = (
        one_round.draw_scored_round(info, history, step) if step in scored_rounds or timeline_figure is None else None
    )
    return _save_figures({f"round-{step}": selection_figure, f"timeline-{step}": timeline_figure}, figures, formats)


def _save_figures(figures: "dict[str, Figure | None]", folder: Path, formats: Sequence[str]) -> list[Path]:
    figures_and_paths = [(figure, folder / f"{name}.png") for name, figure in figures.items() if figure is not None]
    return [path for figure, png_file in figures_and_paths for path in style.save_figure(figure, png_file, formats)]


def _read_journal(info: RunInfo) -> tuple[History, Path]:
    """Return the journal of the run `info`, and the folder of its figures, which is created.

    Raises `OptionError` if that folder is a link, and `CheckpointError` without a journal.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # it logs every font that it reads
    history, folder = read_history(info.folder), info.folder / FIGURES_FOLDER
    if folder.is_symlink():
        raise OptionError(f"{folder} is a link to another folder, where figures are not written: remove the link")
    folder.mkdir(exist_ok=True)
    return history, folder


def write_run_page(info: RunInfo, history: History, figures: Sequence[Path], status: str | None = None) -> Path:
    """Write `report.html`, the page of a run, and return its path.

    Args:
        info: the run.
        history: metrics of the run's rounds.
        figures: the files of the figures; the page shows the PNG files.
        status: how the run ended; None for the status in its folder.
    """
    summary = _summarise_run(info, history, status or str(read_status(info.folder).get("status", "finished")))
    page_path = info.folder / PAGE_FILE
    page_text = render(
        "run.html.j2",
        title=style.describe_run(info),
        summary=summary,
        facts=list_run_facts(info),
        files={figure.stem: figure for figure in figures if figure.suffix == ".png" and figure.exists()},
        picture=Picture,
        correlations=average_score_correlations(info, history),
        costs=list_cost_rows(summary),
        metrics=_tabulate_metrics(summary),
    )
    write_atomically(page_path, page_text)
    return page_path


def show_in_notebook(info: RunInfo, summary: Mapping[str, Any]) -> str:
    """Return the result of a run as HTML for a notebook: the first lines of its summary, and the curve of accuracy.

    Args:
        info: the run.
        summary: content of the run's summary.json.
    """
    curve_path = info.folder / FIGURES_FOLDER / "accuracy.png"
    return render(
        "run_notebook.html.j2",
        title=style.describe_run(info),
        summary=summary,
        facts=list_brief_rows(summary),
        pictures=[Picture(curve_path, "accuracy and loss by round")] if curve_path.exists() else [],
        page=info.folder / PAGE_FILE,
    )


def average_score_correlations(info: RunInfo, history: History) -> dict[str, float]:
    """Return the mean over rounds of the rank correlation of the selector's scores with each property of the clients.

    Properties in which the clients do not differ are left out. The keys are labels, those of the largest means first.

    Args:
        info: the run.
        history: the run's journal.
    """
    mean_by_label = {
        selector_state.STYLE_BY_FACT[client_fact][1]: float(np.nanmean(values))
        for client_fact in selector_state.list_varying_facts(info)
        if (values := history.metrics.get(f"{METRIC_PREFIX}score_{client_fact}")) is not None and values.notna().any()
    }
    return dict(sorted(mean_by_label.items(), key=lambda label_and_mean: -abs(label_and_mean[1])))


def _summarise_run(info: RunInfo, history: History, status: str) -> Mapping[str, Any]:
    """Return the summary of a run, with the wall time of `summary.json` if that file has the same number of rounds.

    Args:
        info: the run.
        history: the run's journal.
        status: how the run ended.
    """
    summary = summarise_run(info, history, status, now_ms=history.times[-1] if history.times else None)
    stored_summary = read_summary(info.folder)
    has_same_rounds = stored_summary.get("rounds") == summary["rounds"]
    return (
        {**summary, "wall_s": stored_summary["wall_s"]} if has_same_rounds and "wall_s" in stored_summary else summary
    )


def _tabulate_metrics(summary: Mapping[str, Any]) -> Table:
    import pandas as pd

    final, best = summary["final"], summary["best"]
    rows = [(name, final[name], *(best.get(name, {}).get(key) for key in ("value", "round"))) for name in sorted(final)]
    metric_frame = pd.DataFrame(rows, columns=["metric", "last", "best", "at round"])
    return Table(metric_frame, "", {"last": ".6g", "best": ".6g", "at round": ".0f"})
