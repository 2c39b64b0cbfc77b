"""following.png: what scores and rewards follow, by their rank correlation with noise, skew, speed and size."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.record import population
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.figure.labels import spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FACTS = {  # as in `round/score_correlation.py`: colour, label, and name in `population.list_facts`
    "noise": (style.VERMILLION, "label noise", "label noise"),
    "skew": (style.PURPLE, "class imbalance", "class imbalance"),
    "seconds": (style.BLUE, "expected seconds", "speed"),
    "samples": (style.GREEN, "number of samples", "samples"),
}
PREFIX = "select/"
MOST = 6  # panels


def draw(info: RunInfo, history: History, path: Path) -> bool:
    """Draw it; False where nothing was correlated."""
    parts = list(dict.fromkeys(part for name in history.metrics if (part := _part(str(name))) is not None))[:MOST]
    facts = list_facts(info)
    if not parts or not facts:
        return False
    figure = style.figure(
        info,
        "Rank correlation of scores and rewards with what clients differ in",
        8,
        1.9 * len(parts) + 1,
    )
    grid = figure.subplots(len(parts), 1, sharex=True, squeeze=False)[:, 0]
    for axes, part in zip(grid, parts, strict=True):
        _panel(axes, history, part, facts)
    style.whole_numbers(grid[-1].xaxis)
    grid[-1].set_xlabel("communication round")
    shown = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    style.legend(figure, list(shown.values()), 4)
    style.save(figure, path)
    return True


def list_facts(info: RunInfo) -> list[str]:
    """List the facts in which clients differ: what a score follows of 24 or 25 samples is chance."""
    differ = {fact.word for fact in population.list_facts(info) if fact.varies}
    return [fact for fact, (_, _, word) in FACTS.items() if word in differ]


def _part(metric: str) -> str | None:
    """The part that a metric of `round/score_correlation.py` is of, None for any other metric."""
    part, _, fact = metric.removeprefix(PREFIX).rpartition("_")
    return part if metric.startswith(PREFIX) and fact in FACTS and part else None


def _panel(axes: "Axes", history: History, part: str, facts: Sequence[str]) -> None:
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    for fact in facts:
        colour, label, _ = FACTS[fact]
        values = history.metrics.get(f"{PREFIX}{part}_{fact}")
        if values is not None and len(known := values.dropna()):
            dots = "o" if len(known) <= style.COUNTABLE else ""
            axes.plot(known.index, known, color=colour, linewidth=1.3, marker=dots, markersize=3, label=label)
    axes.set_ylim(-1.05, 1.05)
    axes.set_ylabel(spell(part))
    style.tidy(axes)
