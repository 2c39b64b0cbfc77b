"""belief.png: the selector's state by round, such as the posterior of FLASH's reward model."""

from typing import TYPE_CHECKING

import numpy as np

from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import label_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 1.96  # standard deviations: 95 % of a normal distribution
MAX_PANELS = 24


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Return the figure; None if the selector traces no quantity."""
    names = list(dict.fromkeys(name for trace in history.trace for name in trace))
    if not names:
        return None
    cut = "" if len(names) <= MAX_PANELS else f" (first {MAX_PANELS} of {len(names)})"
    title = f"State of the selector: mean and 95 % interval{cut}"
    titles = [label_of(name) for name in names[:MAX_PANELS]]
    across = 2 if len(titles) <= 4 else 4
    figure, panels = style.panels(titles, title, style.describe_run(info), across=across, height=0.95, sharey=False)
    for axes, name in zip(panels, names, strict=False):
        traces = zip(history.steps, history.trace, strict=True)
        points = [(step, *trace[name]) for step, trace in traces if name in trace]
        steps, mean, sd = (np.asarray(values, dtype=float) for values in zip(*points, strict=True))
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        axes.fill_between(steps, mean - WIDTH * sd, mean + WIDTH * sd, color=style.BLUE, alpha=0.2, linewidth=0)
        style.line(axes, steps, mean, color=style.BLUE)
    figure.supylabel("value of the state", fontsize=style.TEXT)
    return figure
