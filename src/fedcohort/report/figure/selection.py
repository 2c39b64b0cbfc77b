"""selection.png: who was selected when, who came too late, who was away.

Clients are sorted by what a selector may care about, noise, speed, skew or size, whichever the federation varies.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, Int64

from fedcohort.maths.spearman import correlate
from fedcohort.record import population as facts_of
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report import choice
from fedcohort.report.choice import ARRIVED, AWAY, IDLE, LATE
from fedcohort.report.figure import partition, style
from fedcohort.report.round_times import timed_steps
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

COLOURS = (style.PALE, "#C9C9C9", style.VERMILLION, style.BLUE)
WORDS = ("idle", "unavailable", "selected, too late", "selected, arrived")
COLUMNS = 700  # rounds that a heat map shows one by one
FEW, MOST_PEAKS = 2.0, 3  # a cohort above twice the median is a peak; this many are cut

CELLS = 2**25  # clients x rounds up to which everybody has a row; beyond, those who were ever selected

Fates = Int[np.ndarray, "clients rounds"]


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where no round was done."""
    population, rounds = len(info.n_train), sum(step > 0 for step in history.steps)
    if not rounds:
        return False
    everybody, by = partition.sort_clients(info)
    small = population * rounds <= CELLS
    clients = everybody if small else everybody[np.isin(everybody, ever_selected(history))]
    if not len(clients):
        return False
    known = np.sort(clients)
    fate = fates(history, known)[np.searchsorted(known, clients)]
    fact = facts_of.most_telling(info)
    height = float(np.clip(2.6 + 0.09 * len(clients), 4.2, 8))
    figure = style.figure(info, _title(fate), 11, height)
    strip = not timed_steps(history) and not _is_said(fate)  # pace.png has it where time passes
    heights = [0.7, height - 1.9] if strip else [height - 1.9]
    widths = [6, 1.2, *([1.2] if fact else [])]
    grid = figure.subplots(
        len(heights), len(widths), width_ratios=widths, height_ratios=heights, sharex="col", sharey="row", squeeze=False
    )
    whose = "client" if small else f"client, of the {len(clients):,} ever selected"
    _map(grid[-1, 0], fate, f"{whose}, sorted by {by}" if by else whose)
    style.name_rows(grid[-1, 0], clients, sorted_by_id=not by)
    _per_client(grid[-1, 1], fate)
    if fact is not None:
        values = fact.values[clients]
        partition.draw_strip(grid[-1, 2], values, style.bins(len(clients)), fact.label, partition.COLOURS[fact.word])
        if np.isfinite(rho := follow(fate, values)):
            grid[-1, 1].set_xlabel(f"{grid[-1, 1].get_xlabel()}\n(rank correlation\nwith {fact.word} {rho:+.2f})")
    if strip:
        for axes in grid[0, 1:]:
            axes.remove()
        _per_round(grid[0, 0], fate)
        grid[0, 0].tick_params(labelbottom=False, bottom=False)
    grid[-1, 0].set_xlim(0.5, rounds + 0.5)
    grid[-1, 0].set_ylim(len(clients) - 0.5, -0.5)
    style.legend(figure, _patches(fate), 4)
    style.save(figure, path)
    return True


def _title(fate: Fates) -> str:
    """`Selection: clients by round, 10 a round (50 in round 1)`."""
    sizes = (fate >= LATE).sum(axis=0)
    size = int(np.median(sizes))
    peaks = ", ".join(f"{sizes[i]} in round {i + 1}" for i in np.flatnonzero(sizes != size))
    counts = f", {size} a round{f' ({peaks})' if peaks else ''}" if _is_even(sizes) else ""
    return f"Selection: clients by round{counts}"


def follow(fate: Fates, values: Values) -> float:
    """Rank correlation of how often clients were selected with `values`; NaN where one of them doesn't vary."""
    return correlate((fate >= LATE).sum(axis=1).astype(float), values)


def _is_even(sizes: Ids) -> bool:
    """Whether all cohorts but a few have one size, so that words can say it."""
    return int((sizes != int(np.median(sizes))).sum()) <= MOST_PEAKS


def _is_said(fate: Fates) -> bool:
    return not (fate == LATE).any() and _is_even((fate >= LATE).sum(axis=0))


def ever_selected(history: History) -> Ids:
    """Sorted ids of those who were in a cohort."""
    found = {client for cohort in history.cohorts for client in cohort}
    return np.array(sorted(found), dtype=np.int64)


def fates(history: History, clients: Ids) -> Fates:
    """What each of `clients`, sorted ids, did in each round: one of IDLE, AWAY, LATE, ARRIVED."""
    table = history.clients(["available", "selected", "arrived"], first=1)
    table = table[table["client"].isin(clients)]
    steps = np.array([step for step in history.steps if step], dtype=np.int64)
    fate = np.full((len(clients), len(steps)), IDLE, dtype=np.int8)
    for i, step in enumerate(steps.tolist()):
        if (there := history.available(step)) is not None:
            fate[~there[clients], i] = AWAY
    if len(table):
        rows = np.searchsorted(clients, table["client"].to_numpy())
        facts = [table[name].to_numpy(dtype=bool) for name in ("available", "selected", "arrived")]
        fate[rows, np.searchsorted(steps, table["step"].to_numpy())] = choice.fates(*facts)
    return fate


def coarse(fate: Fates, rows: Ids, columns: Ids) -> Int64[np.ndarray, "rows columns"]:
    """Return one fate for each group of clients and rounds.

    It is ARRIVED where anybody did, else LATE where anybody was, else what most were.
    """
    sizes = np.outer(np.diff(np.append(rows, fate.shape[0])), np.diff(np.append(columns, fate.shape[1])))
    some = {code: _count(fate == code, rows, columns) for code in (AWAY, LATE, ARRIVED)}
    away = 2 * some[AWAY] >= sizes
    return np.select([some[ARRIVED] > 0, some[LATE] > 0, away], [ARRIVED, LATE, AWAY], IDLE).astype(np.int64)


def _count(flags: np.ndarray, rows: Ids, columns: Ids) -> np.ndarray:
    counts: np.ndarray = np.add.reduceat(np.add.reduceat(flags, rows, axis=0, dtype=np.int64), columns, axis=1)
    return counts


def _map(axes: "Axes", fate: Fates, whose: str) -> None:
    from matplotlib.colors import ListedColormap

    count, rounds = fate.shape
    rows, columns = style.bins(count), style.bins(rounds, COLUMNS)
    axes.imshow(
        coarse(fate, rows, columns),
        aspect="auto",
        interpolation="nearest",
        cmap=ListedColormap(COLOURS),
        vmin=-0.5,
        vmax=len(COLOURS) - 0.5,
        extent=(0.5, rounds + 0.5, count - 0.5, -0.5),
    )
    style.separate(axes, len(rows), len(columns))
    grouping = "" if len(rows) == count else f" (each row: about {count / len(rows):.0f} clients)"
    axes.set_xlabel("communication round")
    axes.set_ylabel(f"{whose}{grouping}")
    style.tidy(axes, grid=False)
    style.whole_numbers(axes.xaxis)


def _per_round(axes: "Axes", fate: Fates) -> None:
    rounds = np.arange(0.5, fate.shape[1] + 1)
    arrived, late = (fate == ARRIVED).sum(axis=0), (fate == LATE).sum(axis=0)
    axes.stairs(arrived, rounds, fill=True, color=COLOURS[ARRIVED])
    axes.stairs(arrived + late, rounds, baseline=arrived, fill=True, color=COLOURS[LATE])
    axes.set_ylabel("cohort")
    style.tidy(axes)
    style.whole_numbers(axes.yaxis, 3)
    _cut_peaks(axes, arrived + late, late)


def _cut_peaks(axes: "Axes", sizes: Ids, late: Ids) -> None:
    """A first round with everybody (FLASH) must not flatten all others: it is cut, and its size written beside it."""
    top = FEW * float(np.median(sizes))
    peaks = np.flatnonzero(sizes > top)
    if not top or not 0 < len(peaks) <= MOST_PEAKS:
        return
    axes.set_ylim(0, top)
    for peak in peaks:
        axes.annotate(
            f"{sizes[peak]}" + (f", {late[peak]} too late" if late[peak] else ""),
            (peak + 1.5, top),
            xytext=(2, -1),
            textcoords="offset points",
            va="top",
            fontsize=style.SMALL - 1,
            color=style.BLACK,
        )


def _per_client(axes: "Axes", fate: Fates) -> None:
    rows = style.bins(len(fate))
    sizes = np.diff(np.append(rows, len(fate)))
    arrived, late = (np.add.reduceat((fate == code).sum(axis=1), rows) / sizes for code in (ARRIVED, LATE))
    height = sizes * (0.85 if len(rows) <= style.COUNTABLE else 1.0)
    axes.barh(rows + sizes / 2 - 0.5, arrived, height=height, color=COLOURS[ARRIVED], linewidth=0)
    axes.barh(rows + sizes / 2 - 0.5, late, left=arrived, height=height, color=COLOURS[LATE], linewidth=0)
    axes.set_xlabel("times selected" + (", mean" if len(rows) < len(fate) else ""))
    style.tidy(axes)
    style.whole_numbers(axes.xaxis, 4)
    axes.tick_params(labelleft=False, left=False)


def _patches(fate: Fates) -> "list[Patch]":
    """Return the legend's handles, of what occurred."""
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=COLOURS[code], edgecolor="#BBBBBB", linewidth=0.5, label=WORDS[code])
        for code in (ARRIVED, LATE, AWAY, IDLE)
        if (fate == code).any()
    ]
