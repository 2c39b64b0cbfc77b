"""following.png: rank correlation of the selector's scores and rewards with label noise, skew, speed and size."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedcohort.record import population
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FACTS = {  # names of `round/score_correlation.py`: colour, label, and name in `population.list_facts`
    "noise": (style.VERMILLION, "label noise", "label noise"),
    "skew": (style.PURPLE, "class imbalance", "class imbalance"),
    "seconds": (style.BLUE, "expected seconds", "speed"),
    "samples": (style.GREEN, "number of samples", "samples"),
}
PREFIX = "select/"
MAX_PANELS = 6


def draw(info: RunInfo, history: History) -> "Figure | None":
    """Return the figure; None if the run has no correlations."""
    names = [name for metric in history.metrics if (name := score_of(str(metric))) is not None]
    parts = list(dict.fromkeys(names))[:MAX_PANELS]
    facts = list_facts(info)
    if not parts or not facts:
        return None
    title, note = "Rank correlation of scores and rewards with properties of the clients", style.describe_run(info)
    figure, panels = style.panels([label_of(part) for part in parts], title, note, across=1, height=0.85)
    for axes, part in zip(panels, parts, strict=True):
        _draw_lines(axes, history, part, facts)
    figure.supylabel("rank correlation", fontsize=style.TEXT)
    style.legend(figure)
    return figure


def list_facts(info: RunInfo) -> list[str]:
    """Return the properties in which clients differ visibly; a correlation with others is noise."""
    varying = {fact.word for fact in population.list_traits(info) if fact.varies}
    return [fact for fact, (_, _, word) in FACTS.items() if word in varying]


def score_of(metric: str) -> str | None:
    """Return the score, reward or component that a metric of `round/score_correlation.py` is about; else None."""
    part, _, fact = metric.removeprefix(PREFIX).rpartition("_")
    return part if metric.startswith(PREFIX) and fact in FACTS and part else None


def _draw_lines(axes: "Axes", history: History, part: str, facts: Sequence[str]) -> None:
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    for fact in facts:
        i, (colour, label, _) = list(FACTS).index(fact), FACTS[fact]
        values = history.metrics.get(f"{PREFIX}{part}_{fact}")
        if values is not None and len(measured := values.dropna()):
            look = {"color": colour, "label": label, "linestyle": style.DASHES[i], "marker": style.MARKERS[i]}
            style.line(axes, measured.index, measured, 1.0, **look)
    axes.set_ylim(-1.05, 1.05)
