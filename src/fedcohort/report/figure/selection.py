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
from fedcohort.report.figure.one_round import ARRIVED, IDLE, STYLE_BY_OUTCOME, TOO_LATE, UNAVAILABLE, encode_outcomes
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OUTCOME_COLOURS = (style.PALE_GREY, "#C9C9C9", style.ORANGE, style.BLUE)  # by outcome, in print from light to dark
MAX_MAP_ROUNDS = 700  # rounds that the map shows separately
MAX_MAP_CELLS = 2**25  # clients x rounds up to which every client has a row; otherwise only selected clients have one

OutcomeCodes = Int[np.ndarray, "clients rounds"]


def draw_selection(info: RunInfo, history: History) -> "Figure | None":
    """Draw the selected clients of each round; return None if no round is complete.

    Args:
        info: the run.
        history: journal and per-client table of the run.
    """
    from matplotlib.patches import Patch

    n_clients, n_rounds = len(info.n_train), sum(step > 0 for step in history.steps)
    if not n_rounds:
        return None
    client_order, sort_property = partition.sort_clients(info)
    shows_all_clients = n_clients * n_rounds <= MAX_MAP_CELLS
    clients = client_order if shows_all_clients else client_order[np.isin(client_order, find_selected_clients(history))]
    if not len(clients):
        return None
    sorted_ids = np.sort(clients)
    outcomes = load_outcomes(history, sorted_ids)[np.searchsorted(sorted_ids, clients)]
    trait = population.find_main_trait(info)
    height = float(np.clip(1.6 + 0.08 * len(clients), 2.4, 6.5))
    min_selected, max_selected = np.unique((outcomes >= TOO_LATE).sum(axis=0))[[0, -1]]
    selection_count_text = f"{min_selected}{f' to {max_selected}' if min_selected < max_selected else ''}"
    title = f"Selection: clients by round, {selection_count_text} per round"
    figure = style.make_run_figure(info, title, style.PAGE_WIDTH, height)
    panel_widths = [6, 1.2, *([1.2] if trait else [])]
    panel_axes = figure.subplots(1, len(panel_widths), width_ratios=panel_widths, sharey="row", squeeze=False)[0]
    client_label = "client" if shows_all_clients else f"client, of the {len(clients):,} ever selected"
    _draw_map(panel_axes[0], outcomes, f"{client_label}, sorted by {sort_property}" if sort_property else client_label)
    style.label_client_rows(panel_axes[0], clients, sorted_by_id=not sort_property)
    _draw_client_counts(panel_axes[1], outcomes)
    if trait is not None:
        trait_values = trait.client_values[clients]
        partition.draw_strip(panel_axes[2], trait_values, style.find_group_starts(len(clients)), trait.axis_label)
        if np.isfinite(rho := rank_correlation((outcomes >= TOO_LATE).sum(axis=1).astype(float), trait_values)):
            panel_axes[1].set_xlabel(f"{panel_axes[1].get_xlabel()}\n(rank correlation\nwith {trait.name}\n{rho:+.2f})")
    panel_axes[0].set_xlim(0.5, n_rounds + 0.5)
    panel_axes[0].set_ylim(len(clients) - 0.5, -0.5)
    outcome_codes = [code for code in (ARRIVED, TOO_LATE, UNAVAILABLE, IDLE) if (outcomes == code).any()]
    style.add_legend(figure, [Patch(**_choose_bar_style(c), label=STYLE_BY_OUTCOME[c][2]) for c in outcome_codes])
    return figure


def find_selected_clients(history: History) -> Ids:
    """Return the sorted ids, [n], of the clients that were in a cohort of the run with this `history`."""
    return np.array(sorted({client for cohort in history.cohorts for client in cohort}), dtype=np.int64)


def load_outcomes(history: History, clients: Ids) -> OutcomeCodes:
    """Return the outcome of each client in each round, [clients, rounds]: IDLE, UNAVAILABLE, TOO_LATE or ARRIVED.

    Args:
        history: the journal.
        clients: sorted ids.
    """
    table = history.clients(["available", "selected", "arrived"], start=1)
    table = table[table["client"].isin(clients)]
    steps = np.array([round_number for round_number in history.steps if round_number], dtype=np.int64)
    outcome_codes = np.full((len(clients), len(steps)), IDLE, dtype=np.int8)
    for i, round_number in enumerate(steps.tolist()):
        if (is_available := history.available(round_number)) is not None:
            outcome_codes[~is_available[clients], i] = UNAVAILABLE
    if len(table):
        client_positions = np.searchsorted(clients, table["client"].to_numpy())
        status_flags = [table[column_name].to_numpy(dtype=bool) for column_name in ("available", "selected", "arrived")]
        outcome_codes[client_positions, np.searchsorted(steps, table["step"].to_numpy())] = encode_outcomes(
            *status_flags
        )
    return outcome_codes


def coarsen_outcomes(outcomes: OutcomeCodes, row_starts: Ids, column_starts: Ids) -> Int64[np.ndarray, "rows columns"]:
    """Return one outcome for each group of clients and rounds, [client groups, round groups].

    It is ARRIVED if any client arrived, else TOO_LATE if any was late, else the outcome of the majority.

    Args:
        outcomes: outcome of each client in each round, [clients, rounds].
        row_starts: first row of each group of clients.
        column_starts: first column of each group of rounds.
    """
    best_outcomes = np.maximum.reduceat(np.maximum.reduceat(outcomes, row_starts, axis=0), column_starts, axis=1)
    unavailable_shares = partition.average_groups(
        partition.average_groups(outcomes == UNAVAILABLE, row_starts).T, column_starts
    ).T
    return np.where(
        best_outcomes >= TOO_LATE, best_outcomes, np.where(unavailable_shares >= 0.5, UNAVAILABLE, IDLE)
    ).astype(np.int64)


def _draw_map(axes: "Axes", outcomes: OutcomeCodes, axis_label: str) -> None:
    from matplotlib.colors import ListedColormap

    n_clients, n_rounds = outcomes.shape
    rows, columns = style.find_group_starts(n_clients), style.find_group_starts(n_rounds, MAX_MAP_ROUNDS)
    axes_extent, map_values = (0.5, n_rounds + 0.5, n_clients - 0.5, -0.5), coarsen_outcomes(outcomes, rows, columns)
    image_style: dict[str, Any] = {
        "cmap": ListedColormap(OUTCOME_COLOURS),
        "vmin": -0.5,
        "vmax": len(OUTCOME_COLOURS) - 0.5,
    }
    style.draw_heat_map(axes, map_values, extent=axes_extent, **image_style)
    if max(len(rows), len(columns)) <= style.MAX_MARKED_POINTS:
        late_client_rows, late_round_columns = np.nonzero(outcomes == TOO_LATE)
        axes.plot(late_round_columns + 1, late_client_rows, "x", color=style.BLACK, markersize=2, markeredgewidth=0.6)
    clients_per_row_text = "" if len(rows) == n_clients else f" (each row: about {n_clients / len(rows):.0f} clients)"
    axes.set_ylabel(f"{axis_label}{clients_per_row_text}")
    style.label_rounds_axis(axes)


def _draw_client_counts(axes: "Axes", outcomes: OutcomeCodes) -> None:
    rows = style.find_group_starts(len(outcomes))
    group_sizes = np.diff(np.append(rows, len(outcomes)))
    height = group_sizes * (0.85 if len(rows) <= style.MAX_MARKED_POINTS else 1.0)
    bar_start = np.zeros(len(rows))
    for outcome_code in (ARRIVED, TOO_LATE):
        width = partition.average_groups((outcomes == outcome_code).sum(axis=1), rows)
        axes.barh(rows + group_sizes / 2 - 0.5, width, left=bar_start, height=height, **_choose_bar_style(outcome_code))
        bar_start = bar_start + width
    axes.set_xlim(0, 1.05 * max(float(bar_start.max()), 1.0))
    axes.set_xlabel("times selected" + (", mean" if len(rows) < len(outcomes) else ""))
    style.format_axes(axes)
    style.use_integer_ticks(axes.xaxis, 4)
    axes.tick_params(labelleft=False, left=False)


def _choose_bar_style(outcome_code: int) -> dict[str, Any]:
    hatch_pattern = style.HATCH_PATTERN if outcome_code == TOO_LATE else ""
    return {
        "facecolor": OUTCOME_COLOURS[outcome_code],
        "hatch": hatch_pattern,
        "edgecolor": "#777777",
        "linewidth": 0.2,
    }
