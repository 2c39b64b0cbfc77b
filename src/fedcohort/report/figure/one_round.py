"""round.png: how a round's cohort was selected: availability, scores with their components, and arrivals.

Only for selectors that score, or draw with unequal probabilities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from fedcohort.ranges import range_error
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.selector_state import label_component
from fedcohort.types import Ids, Values

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IDLE, UNAVAILABLE, TOO_LATE, ARRIVED = range(4)
OutcomeCodes = Int[np.ndarray, "_n"]
N_BEST_CLIENT_ROWS, MAX_ROWS = (
    30,
    60,
)  # rows: up to `MAX_ROWS` all clients, otherwise the best by score and the selected ones
MAX_COMPONENT_PANELS = 5  # components that are drawn next to a score
STYLE_BY_OUTCOME = {  # outcome -> (colour, marker, label)
    ARRIVED: (style.BLUE, "o", "selected, arrived"),
    TOO_LATE: (style.VERMILLION, "X", "selected, too late or lost"),
    IDLE: ("#ABABAB", ".", "available, not selected"),
    UNAVAILABLE: ("#D9D9D9", "$\u25cb$", "unavailable"),
}


@dataclass(frozen=True)
class ScoredRound:
    """The selection of one round, for all clients.

    Attributes:
        step: number of the round.
        outcomes: outcome of each client, [n_clients]: IDLE (available, not selected), UNAVAILABLE, TOO_LATE (selected,
            but no update arrived) or ARRIVED.
        columns: values by client, [n_clients], NaN if unknown: `score`, `probability` if the selector draws, and each
            component of the scores as `part_<name>`.
    """

    step: int
    outcomes: OutcomeCodes
    columns: Mapping[str, Values]

    @property
    def score(self) -> Values:
        """The values by which the clients are ranked, scores or else probabilities, [n_clients]."""
        has_scores = "probability" not in self.columns or not np.isnan(self.columns["score"]).all()
        return self.columns["score" if has_scores else "probability"]

    @property
    def is_selected(self) -> Bool[np.ndarray, "_n"]:
        """Which clients were selected, bool [n_clients]."""
        return np.isin(self.outcomes, (ARRIVED, TOO_LATE))

    @property
    def ranking(self) -> Ids:
        """Ids of all clients by falling score, [n_clients]; among equals selected ones first; without score last."""
        finite_scores = np.where(np.isnan(self.score), -np.inf, self.score)
        return np.lexsort((np.arange(len(finite_scores)), ~self.is_selected, np.isnan(self.score), -finite_scores))


def list_scored_rounds(history: History) -> list[int]:
    """Return the rounds in which a client was selected and a client had a score or a selection probability.

    `history` has the per-client table of the run.
    """
    table = history.clients(["selected", "score", "probability"], start=1)
    columns = [name for name in ("score", "probability") if name in table]
    if not columns or not len(table):
        return []
    rows_by_step = table.assign(scored=table[columns].notna().any(axis=1)).groupby("step")[["selected", "scored"]].any()
    return [int(step) for step in rows_by_step.index[rows_by_step.all(axis=1)]]


def encode_outcomes(is_available: np.ndarray, is_selected: np.ndarray, has_arrived: np.ndarray) -> OutcomeCodes:
    """Return whether each client was IDLE, UNAVAILABLE, TOO_LATE or ARRIVED in a round, int8 [n_clients].

    Args:
        is_available: whether each client was available, bool [n_clients].
        is_selected: whether each client was selected, bool [n_clients].
        has_arrived: whether the update of each client arrived, bool [n_clients].
    """
    outcome_codes = np.select(
        [is_selected & has_arrived, is_selected, ~is_available], [ARRIVED, TOO_LATE, UNAVAILABLE], IDLE
    )
    return outcome_codes.astype(np.int8)


def load_scored_round(history: History, step: int) -> ScoredRound:
    """Return the selection of round `step` from the journal and the per-client table in `history`."""
    client_table = history.clients(start=step)
    round_rows = client_table[client_table["step"] == step].set_index("client")
    logged_availability = history.available(step)
    is_available = round_rows["available"].to_numpy(dtype=bool) if logged_availability is None else logged_availability
    client_frame = round_rows.reindex(index=range(len(is_available))).dropna(axis="columns", how="all").astype(float)
    columns: dict[str, Values] = {str(name): round_columns.to_numpy() for name, round_columns in client_frame.items()}
    nan_values = np.full(len(is_available), np.nan)
    is_selected, has_arrived = (columns.get(name, nan_values) == 1 for name in ("selected", "arrived"))
    column_names = [name for name in columns if name == "probability" or name.startswith("part_")]
    round_columns = {"score": columns.get("score", nan_values), **{name: columns[name] for name in column_names}}
    return ScoredRound(step, encode_outcomes(is_available, is_selected, has_arrived), round_columns)


def choose_shown_clients(round: ScoredRound) -> Ids:
    """Return the ids, [rows], of the clients of `round` that have a row in the figure, best first.

    These are all clients with a score or a selection, if there are at most `MAX_ROWS` of them. Otherwise they are the
    best `N_BEST_CLIENT_ROWS` and all selected clients, `MAX_ROWS` at most.
    """
    ranking = round.ranking
    has_score, is_selected = ~np.isnan(round.score[ranking]), round.is_selected[ranking]
    if (has_score | is_selected).sum() > MAX_ROWS:
        has_score[N_BEST_CLIENT_ROWS:] = False
    return np.asarray(ranking[has_score | is_selected][:MAX_ROWS])


def draw_scored_round(info: RunInfo, history: History, step: int | None = None) -> "Figure | None":
    """Return the figure of a round's selection; None if no round has scores.

    Args:
        info: the run.
        history: journal and per-client table of the run.
        step: number of the round; None for the last round with scores.

    Raises:
        OptionError: round `step` has no scores.
    """
    scored_rounds = list_scored_rounds(history)
    if step is not None and step not in scored_rounds:
        allowed_text = (
            f"one of the rounds that selected by scores or probabilities, {format_steps(scored_rounds)}"
            if scored_rounds
            else f"left out, as selector={info.choices.get('selector')} gives neither scores nor probabilities"
        )
        raise range_error("round", allowed_text, step)
    if not scored_rounds:
        return None
    round = load_scored_round(history, scored_rounds[-1] if step is None else step)
    shown_clients, panels = choose_shown_clients(round), _list_panels(round)
    height = float(np.clip(0.11 * len(shown_clients), 1.4, 5.8))
    width = style.COLUMN_WIDTH if len(panels) == 1 else style.PAGE_WIDTH
    figure = style.make_run_figure(info, _format_title(round), width, height + 1.2)
    panel_widths = [3.0] + [1.4] * (len(panels) - 1)
    panel_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=panel_widths)[0]
    for i, (axes, (panel_label, client_values)) in enumerate(zip(panel_axes, panels, strict=True)):
        _draw_bars(axes, round, shown_clients, client_values[shown_clients])
        axes.set_xlabel(style.wrap_text(panel_label, width / len(panels) - 0.2))
        axes.locator_params(axis="x", nbins=3 if i else 5)
    _label_rows(panel_axes[0], info, round, shown_clients)
    style.add_legend(figure, _list_legend_handles(round))
    return figure


def _format_title(round: ScoredRound) -> str:
    n_available, n_selected = int((round.outcomes != UNAVAILABLE).sum()), int(round.is_selected.sum())
    n_arrived = int((round.outcomes == ARRIVED).sum())
    return f"Round {round.step}: {n_selected:,} of {n_available:,} available clients selected, {n_arrived:,} arrived"


def _list_panels(round: ScoredRound) -> list[tuple[str, Values]]:
    """Return the label of each panel, and its values by client, [n_clients]; `round` has scores and probabilities."""
    columns = round.columns
    component_columns = [name for name in columns if name.startswith("part_")]
    panels = [] if np.isnan(columns["score"]).all() else [("score", columns["score"])]
    panels += [
        (label_component(name.removeprefix("part_")), columns[name])
        for name in component_columns[:MAX_COMPONENT_PANELS]
    ]
    if (n_hidden := len(component_columns) - MAX_COMPONENT_PANELS) > 0:
        panel_label, client_values = panels[-1]
        panels[-1] = (f"{panel_label}\n({n_hidden} more are not shown)", client_values)
    return panels + [(name, columns[name]) for name in ("probability",) if name in columns]


def _draw_bars(axes: "Axes", round: ScoredRound, rows: Ids, values: Values) -> None:
    """Draw the values of the rows in the colours of the outcomes, and a text for values that are not finite.

    Args:
        axes: the panel.
        round: the selection, with the outcomes.
        rows: client of each row.
        values: value of each row, [rows].
    """
    colours = [STYLE_BY_OUTCOME[int(outcome_code)][0] for outcome_code in round.outcomes[rows]]
    axes.barh(np.arange(len(rows)), np.where(np.isfinite(values), values, 0.0), height=0.78, color=colours, linewidth=0)
    text_style: dict[str, Any] = {"va": "center", "fontsize": style.fit_row_font(axes, len(rows)), "color": "#555555"}
    for i in np.flatnonzero(~np.isfinite(values)):
        value_text = "none" if np.isnan(values[i]) else ("\u221e" if values[i] > 0 else "\u2212\u221e")
        axes.text(0.01, float(i), value_text, transform=axes.get_yaxis_transform(), **text_style)
    axes.axvline(0, color=style.GREY, linewidth=0.6)
    axes.use_sticky_edges = False  # bars end inside the frame
    style.format_axes(axes, "x")
    axes.tick_params(axis="y", length=0)


def _label_rows(axes: "Axes", info: RunInfo, round: ScoredRound, rows: Ids) -> None:
    """Put the clients' ids, label noise and most frequent class at the rows, each with the sign of its outcome.

    Args:
        axes: the panel.
        info: the run, with noise and classes of its clients.
        round: the selection, with the outcomes.
        rows: client of each row.
    """
    noise_percent, majority_class = 100 * np.nan_to_num(info.noise_rate), info.class_counts.argmax(axis=1)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(np.arange(len(rows)), [f"{k}, {noise_percent[k]:.0f} %, {majority_class[k]}" for k in rows])
    axes.tick_params(axis="y", labelsize=style.fit_row_font(axes, len(rows)), pad=11)
    for outcome_code in np.unique(round.outcomes[rows]):  # an empty line without clipping would break the layout
        y = np.flatnonzero(round.outcomes[rows] == outcome_code)
        colour, marker, _ = STYLE_BY_OUTCOME[int(outcome_code)]
        marker_style: dict[str, Any] = {"color": colour, "markersize": 3.5, "linestyle": "none", "clip_on": False}
        axes.plot(np.full(len(y), -0.035), y, marker=marker, transform=axes.get_yaxis_transform(), **marker_style)
    n_hidden = int(round.is_selected.sum() - round.is_selected[rows].sum())
    hidden_text = f"; {n_hidden:,} more were selected" if n_hidden else ""
    order_text = f"best first, {len(rows)} of {len(round.score):,}{hidden_text}"
    axes.set_ylabel(f"client, label noise, most frequent class\n({order_text})")


def _list_legend_handles(round: ScoredRound) -> "list[Artist]":
    """Return the legend's entries: the outcomes that occur in `round`."""
    from matplotlib.lines import Line2D

    shown_styles = [
        style_of_outcome for code, style_of_outcome in STYLE_BY_OUTCOME.items() if (round.outcomes == code).any()
    ]
    return [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=label)
        for colour, marker, label in shown_styles
    ]


def format_steps(steps: Sequence[int]) -> str:
    """Return the ascending rounds `steps` as text: "1 to 50", or "2, 5, ..., 50" if some between them are missing."""
    if steps[-1] - steps[0] + 1 == len(steps):
        return str(steps[0]) if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    return ", ".join(map(str, steps)) if len(steps) <= 6 else f"{steps[0]}, {steps[1]}, ..., {steps[-1]}"
