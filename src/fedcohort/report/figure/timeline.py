"""timeline.png: a round on the clock, a line a client: download, look, training, upload, and when the round closed."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedcohort import units
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style
from fedcohort.report.round_times import MOST, TimedRound, load, timed_steps
from fedcohort.types import Ids

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LOOKS = {  # phase -> (colour, label)
    "down_s": (style.SKY, "download"),
    "infer_s": (style.PURPLE, "looks at its data"),
    "train_s": (style.BLUE, "trains"),
    "up_s": (style.GREEN, "upload"),
}
ROOM = 1.8  # of the closing time: how far the axis goes where somebody takes longer
SEEN = 0.002  # of a round: a phase that is shorter for everybody is not in the legend
PALE = 0.28  # of what comes after the round has closed


def draw(info: RunInfo, history: History, path: Path, step: int | None = None) -> bool:
    """Draw round `step`, None for the last one; False where no time passed in it."""
    steps = timed_steps(history)
    if not steps or (step is not None and step not in steps):
        return False
    _draw(info, load(history, steps[-1] if step is None else step), path)
    return True


def _draw(info: RunInfo, round: TimedRound, path: Path) -> None:
    rows = choose_rows(round)
    size, unit = style.virtual_unit([float(min(round.finish.max(), ROOM * end(round)))])
    height = float(np.clip(0.24 * len(rows), 1.4, 6.4))
    figure = style.figure(info, title(round), 10, height + 1.9)
    axes = figure.subplots()
    right = _bars(axes, round, rows, size)
    axes.axvline(round.closed / size, color=style.BLACK, linewidth=1.4)
    if np.isfinite(round.announced):
        axes.axvline(round.announced / size, color=style.VERMILLION, linewidth=1.4, linestyle=(0, (4, 2)))
    axes.set_xlim(0, right)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    left = len(round.clients) - len(rows)
    axes.set_yticks(np.arange(len(rows)), [str(k) for k in round.clients[rows]])
    axes.set_ylabel(f"client, first done first{f' ({left:,} more are not shown)' if left else ''}")
    axes.set_xlabel(f"virtual time since the broadcast, {unit}")
    style.tidy(axes)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0, labelsize=float(np.clip(72 * height / len(rows) * 0.7, 5.0, style.SMALL)))
    for label, k in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(style.BLACK if round.arrived[k] else style.VERMILLION)
    handles = _handles(round)
    style.legend(figure, handles, len(handles) if len(handles) <= 4 else -(-len(handles) // 2))
    style.save(figure, path)


def choose_rows(round: TimedRound) -> Ids:
    """Places of the clients that have a line: everybody, or `MOST` of them evenly over the order."""
    count = len(round.clients)
    return np.unique(np.linspace(0, count - 1, min(count, MOST)).round().astype(np.int64))


def end(round: TimedRound) -> float:
    """The last moment that is drawn for itself: the close, or the deadline where that is later."""
    return max(round.closed, round.announced) if np.isfinite(round.announced) else round.closed


def title(round: TimedRound) -> str:
    """`Round 12: 7 of 10 arrived, 2 with a part of their work; closed after 49 s`."""
    came, part = int(round.arrived.sum()), int(round.partial.sum())
    work = f", {part} with a part of their work" if part else ""
    asked = round.whole - round.closed
    more = f" ({units.seconds(asked)} more for questions and waits)" if asked > 0.005 * round.closed else ""
    closed = f"closed after {units.seconds(round.closed)}{more}"
    return f"Round {round.step}: {came} of {len(round.clients)} arrived{work}; {closed}"


def _bars(axes: "Axes", round: TimedRound, rows: Ids, size: float) -> float:
    """A line a client, pale after the round has closed; returns where the axis ends."""
    y = np.arange(len(rows))
    finish = round.finish[rows] / size
    right = 1.03 * min(float(finish.max()), ROOM * end(round) / size)
    right = max(right, 1.06 * end(round) / size)
    start = np.zeros(len(rows))
    close = round.closed / size
    for phase, (colour, _) in LOOKS.items():
        stop = np.minimum(start + round.phases[phase][rows] / size, 2 * right)  # who never comes back is never done
        late = ~round.arrived[rows]
        until = np.where(late, np.minimum(stop, close), stop)
        axes.barh(y, np.maximum(until - start, 0), left=start, height=0.72, color=colour, linewidth=0)
        since = np.maximum(start, close)
        after = np.where(late, np.maximum(stop - since, 0), 0)
        axes.barh(y, after, left=since, height=0.72, color=colour, alpha=PALE, linewidth=0)
        start = stop
    size_of = float(np.clip(72 * 5 / len(rows) * 0.7, 5.0, style.SMALL - 1))
    for i, k in enumerate(rows):
        words = []
        if round.partial[k]:
            words.append(f"{round.units[k]:.0f} of {round.asked[k]:.0f} units")
        if finish[i] > right:
            seconds = float(round.finish[k])
            words.append(f"done after {units.seconds(seconds)}" if np.isfinite(seconds) else "never done")
        if words:
            beyond = finish[i] > right
            axes.annotate(
                ", ".join(words),
                (right if beyond else float(finish[i]), float(i)),
                xytext=(-3 if beyond else 3, 0),
                textcoords="offset points",
                ha="right" if beyond else "left",
                va="center",
                fontsize=size_of,
                color=style.BLACK,
                bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.6},  # over the lines
                zorder=5,
            )
    return right


def _handles(round: TimedRound) -> "list[Artist]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    visible = SEEN * max(end(round), float(np.median(round.finish)))
    seen = [look for phase, look in LOOKS.items() if round.phases[phase].max() >= visible]
    found: list[Artist] = [Patch(color=colour, label=label) for colour, label in seen]
    if not round.arrived.all():
        found.append(Patch(color=style.BLUE, alpha=PALE, label="too late (number in red): pale after the close"))
    found.append(Line2D([], [], color=style.BLACK, linewidth=1.4, label="the round closed"))
    if np.isfinite(round.announced):
        look = {"color": style.VERMILLION, "linewidth": 1.4, "linestyle": (0, (4, 2))}
        found.append(Line2D([], [], label="announced deadline", **look))  # type: ignore[arg-type]
    return found
