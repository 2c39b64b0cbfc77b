"""selection.png: the clients that were selected, late or unavailable in each round.

Clients are sorted by the first property in which they differ: label noise, speed, class imbalance or size.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int, Int64

from fedcohort.maths.spearman import rank_correlation
from fedcohort.record import population
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import partition, style
from fedcohort.report.figure.one_round import ARRIVED, AWAY, IDLE, TOO_LATE, outcomes_of
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.PALE_GREY, "#C9C9C9", style.ORANGE, style.BLUE)  # by outcome, in print from light to dark
LABELS = ("available, not selected", "unavailable", "selected, too late or lost", "selected, arrived")
MAX_MAP_ROUNDS = 700  # rounds that the map shows separately
MAX_MAP_CELLS = 2**25  # clients x rounds up to which every client has a row; otherwise only selected clients have one

Outcomes = Int[np.ndarray, "clients rounds"]


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Draw the selected clients of each round; return None if no round is complete."""
    from matplotlib.patches import Patch

    n_clients, rounds = len(info.n_train), sum(step > 0 for step in history.steps)
    if not rounds:
        return None
    client_order, sorted_by = partition.sort_clients(info)
    is_small = n_clients * rounds <= MAX_MAP_CELLS
    clients = client_order if is_small else client_order[np.isin(client_order, find_selected_clients(history))]
    if not len(clients):
        return None
    ids = np.sort(clients)
    outcome = outcomes(history, ids)[np.searchsorted(ids, clients)]
    trait = population.find_main_trait(info)
    height = float(np.clip(1.6 + 0.08 * len(clients), 2.4, 6.5))
    low, high = np.unique((outcome >= TOO_LATE).sum(axis=0))[[0, -1]]
    title = f"Selection: clients by round, {low}{f' to {high}' if low < high else ''} per round"
    figure = style.new_run_figure(info, title, style.PAGE, height)
    widths = [6, 1.2, *([1.2] if trait else [])]
    grid = figure.subplots(1, len(widths), width_ratios=widths, sharey="row", squeeze=False)[0]
    label = "client" if is_small else f"client, of the {len(clients):,} ever selected"
    _draw_map(grid[0], outcome, f"{label}, sorted by {sorted_by}" if sorted_by else label)
    style.name_rows(grid[0], clients, sorted_by_id=not sorted_by)
    _draw_client_counts(grid[1], outcome)
    if trait is not None:
        values = trait.values[clients]
        partition.draw_strip(grid[2], values, style.group_starts(len(clients)), trait.label)
        if np.isfinite(rho := rank_correlation((outcome >= TOO_LATE).sum(axis=1).astype(float), values)):
            grid[1].set_xlabel(f"{grid[1].get_xlabel()}\n(rank correlation\nwith {trait.word}\n{rho:+.2f})")
    grid[0].set_xlim(0.5, rounds + 0.5)
    grid[0].set_ylim(len(clients) - 0.5, -0.5)
    outcome_codes = [code for code in (ARRIVED, TOO_LATE, AWAY, IDLE) if (outcome == code).any()]
    style.legend(figure, [Patch(**_bar_style(code), label=LABELS[code]) for code in outcome_codes])
    return figure


def find_selected_clients(history: History) -> Ids:
    """Return the sorted ids of the clients that were in a cohort."""
    clients = {client for cohort in history.cohorts for client in cohort}
    return np.array(sorted(clients), dtype=np.int64)


def outcomes(history: History, clients: Ids) -> Outcomes:
    """Return the outcome of each client in each round: IDLE, AWAY, TOO_LATE or ARRIVED.

    Args:
        history: the journal.
        clients: sorted ids.
    """
    table = history.clients(["available", "selected", "arrived"], start=1)
    table = table[table["client"].isin(clients)]
    steps = np.array([step for step in history.steps if step], dtype=np.int64)
    outcome = np.full((len(clients), len(steps)), IDLE, dtype=np.int8)
    for i, step in enumerate(steps.tolist()):
        if (available := history.available(step)) is not None:
            outcome[~available[clients], i] = AWAY
    if len(table):
        rows = np.searchsorted(clients, table["client"].to_numpy())
        flags = [table[name].to_numpy(dtype=bool) for name in ("available", "selected", "arrived")]
        outcome[rows, np.searchsorted(steps, table["step"].to_numpy())] = outcomes_of(*flags)
    return outcome


def coarsen(outcome: Outcomes, rows: Ids, columns: Ids) -> Int64[np.ndarray, "rows columns"]:
    """Return one outcome for each group of clients and rounds.

    It is ARRIVED if any client arrived, else TOO_LATE if any was late, else the outcome of the majority.
    """
    best_outcome = np.maximum.reduceat(np.maximum.reduceat(outcome, rows, axis=0), columns, axis=1)
    is_away = partition.group_means(partition.group_means(outcome == AWAY, rows).T, columns).T
    return np.where(best_outcome >= TOO_LATE, best_outcome, np.where(is_away >= 0.5, AWAY, IDLE)).astype(np.int64)


def _draw_map(axes: "Axes", outcome: Outcomes, label: str) -> None:
    from matplotlib.colors import ListedColormap

    n_clients, rounds = outcome.shape
    rows, columns = style.group_starts(n_clients), style.group_starts(rounds, MAX_MAP_ROUNDS)
    axes_extent, image_style = (0.5, rounds + 0.5, n_clients - 0.5, -0.5), {"vmin": -0.5, "vmax": len(COLOURS) - 0.5}
    style.draw_heat_map(axes, coarsen(outcome, rows, columns), axes_extent, cmap=ListedColormap(COLOURS), **image_style)
    if max(len(rows), len(columns)) <= style.MAX_MARKED_POINTS:
        row, column = np.nonzero(outcome == TOO_LATE)
        axes.plot(column + 1, row, "x", color=style.BLACK, markersize=2, markeredgewidth=0.6)
    grouping_text = "" if len(rows) == n_clients else f" (each row: about {n_clients / len(rows):.0f} clients)"
    axes.set_ylabel(f"{label}{grouping_text}")
    style.label_rounds_axis(axes)


def _draw_client_counts(axes: "Axes", outcome: Outcomes) -> None:
    rows = style.group_starts(len(outcome))
    group_sizes = np.diff(np.append(rows, len(outcome)))
    height = group_sizes * (0.85 if len(rows) <= style.MAX_MARKED_POINTS else 1.0)
    bar_start = np.zeros(len(rows))
    for outcome_code in (ARRIVED, TOO_LATE):
        width = partition.group_means((outcome == outcome_code).sum(axis=1), rows)
        axes.barh(rows + group_sizes / 2 - 0.5, width, left=bar_start, height=height, **_bar_style(outcome_code))
        bar_start = bar_start + width
    axes.set_xlim(0, 1.05 * max(float(bar_start.max()), 1.0))
    axes.set_xlabel("times selected" + (", mean" if len(rows) < len(outcome) else ""))
    style.format_axes(axes)
    style.use_integer_ticks(axes.xaxis, 4)
    axes.tick_params(labelleft=False, left=False)


def _bar_style(code: int) -> dict[str, Any]:
    hatch = style.HATCH_PATTERN if code == TOO_LATE else ""
    return {"facecolor": COLOURS[code], "hatch": hatch, "edgecolor": "#777777", "linewidth": 0.2}
