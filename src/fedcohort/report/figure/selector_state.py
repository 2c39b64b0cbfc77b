"""The selector by round: belief.png shows its state, following.png correlations of its scores and rewards.

belief.png is of the state, such as the posterior of FLASH's reward model. following.png is the rank correlation with
label noise, skew, speed and size. A component of a score or of a state without a label is shown under its name in
`clients.parquet` and the journal.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml

from fedcohort.record import population
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.round.score_correlation import METRIC_PREFIX, split_metric_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Z_95 = 1.96  # standard deviations: 95 % of a normal distribution
MAX_STATE_PANELS = 24
STYLE_BY_FACT = {  # names of `round/score_correlation.py`: colour, label, and name in `population.list_traits`
    "noise": (style.VERMILLION, "label noise", "label noise"),
    "skew": (style.PURPLE, "class imbalance", "class imbalance"),
    "seconds": (style.BLUE, "expected seconds", "speed"),
    "samples": (style.GREEN, "number of samples", "samples"),
}
MAX_SCORE_PANELS = 6
COMPONENT_LABELS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())  # labels of components


def draw_selector_state(info: RunInfo, history: History) -> "Figure | None":
    """Draw the quantities of the selector's state by round; return None if it traces none.

    Args:
        info: the run.
        history: journal of the run.
    """
    component_names = list(dict.fromkeys(name for component_trace in history.trace for name in component_trace))
    if not component_names:
        return None
    hidden_text = (
        "" if len(component_names) <= MAX_STATE_PANELS else f" (first {MAX_STATE_PANELS} of {len(component_names)})"
    )
    title = f"State of the selector: mean and 95 % interval{hidden_text}"
    panel_titles = [label_component(name) for name in component_names[:MAX_STATE_PANELS]]
    n_columns, note = 2 if len(panel_titles) <= 4 else 4, style.describe_run(info)
    figure, panels = style.make_panels(panel_titles, title, note, columns=n_columns, height=0.95, shares_y_axis=False)
    for axes, name in zip(panels, component_names, strict=False):
        steps_and_traces = zip(history.steps, history.trace, strict=True)
        trace_points = [
            (step, *component_trace[name]) for step, component_trace in steps_and_traces if name in component_trace
        ]
        rounds, mean, std = (np.asarray(point_values, dtype=float) for point_values in zip(*trace_points, strict=True))
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        axes.fill_between(rounds, mean - Z_95 * std, mean + Z_95 * std, color=style.BLUE, alpha=0.2, linewidth=0)
        style.draw_line(axes, rounds, mean, color=style.BLUE)
    figure.supylabel("value of the state", fontsize=style.FONT_SIZE)
    return figure


def draw_correlations(info: RunInfo, history: History) -> "Figure | None":
    """Draw rank correlations of scores and rewards with client properties by round; return None without any.

    Args:
        info: the run.
        history: journal of the run.
    """
    components_and_facts = [
        component_and_fact
        for metric in history.metrics
        if (component_and_fact := split_metric_name(str(metric))) is not None
    ]
    score_components = list(dict.fromkeys(term for term, _ in components_and_facts))[:MAX_SCORE_PANELS]
    facts = list_varying_facts(info)
    if not score_components or not facts:
        return None
    title, note = "Rank correlation of scores and rewards with properties of the clients", style.describe_run(info)
    figure, panels = style.make_panels(
        list(map(label_component, score_components)), title, note, columns=1, height=0.85
    )
    for axes, term in zip(panels, score_components, strict=True):
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        for i, (fact_name, (colour, label, _)) in enumerate(STYLE_BY_FACT.items()):
            correlations = history.metrics.get(f"{METRIC_PREFIX}{term}_{fact_name}") if fact_name in facts else None
            if correlations is not None and len(measured_correlations := correlations.dropna()):
                line_style = {
                    "color": colour,
                    "label": label,
                    "linestyle": style.LINE_DASHES[i],
                    "marker": style.LINE_MARKERS[i],
                }
                style.draw_line(axes, measured_correlations.index, measured_correlations, 1.0, **line_style)
        axes.set_ylim(-1.05, 1.05)
    figure.supylabel("rank correlation", fontsize=style.FONT_SIZE)
    style.add_legend(figure)
    return figure


def list_varying_facts(info: RunInfo) -> list[str]:
    """Return the properties in which the clients of the run `info` differ; correlations with others are noise."""
    varying_traits = {client_trait.name for client_trait in population.list_traits(info) if client_trait.has_spread}
    return [fact_name for fact_name, (_, _, trait_name) in STYLE_BY_FACT.items() if trait_name in varying_traits]


def label_component(name: str) -> str:
    """Return the label of a component of scores: "last reward" for `name` = `prev_reward`, "theta 0" for `theta_0`."""
    return str(COMPONENT_LABELS.get(name, name.replace("_", " ")))
