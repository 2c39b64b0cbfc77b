"""timeline.png: one round in virtual time: download, forward passes, training and upload of each client.

`TimedRound` has the virtual time of a round: phases of each selected client's job, late clients, and the end.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort import units
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE_BY_PHASE = {  # phase -> (colour, label)
    "down_s": (style.SKY_BLUE, "download"),
    "infer_s": (style.PURPLE, "forward passes"),
    "train_s": (style.BLUE, "training"),
    "up_s": (style.GREEN, "upload"),
}
MAX_JOB_ROWS = 60  # clients that can be distinguished
MAX_AXIS_MULTIPLE = 1.8  # multiple of the round's length to which the axis extends for slower clients
MIN_VISIBLE_SHARE = 0.002  # share of a round: a phase that is shorter for all clients is not in the legend
PALE_OPACITY = 0.28  # opacity of phases after the end of the round
TEXT_BOX_STYLE = {"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.6}  # of text over lines
DEADLINE_STYLE: dict[str, Any] = {"color": style.VERMILLION, "linewidth": 1.4, "linestyle": (0, (4, 2))}


@dataclass(frozen=True)
class TimedRound:
    """The virtual time of one round.

    Attributes:
        step: the round.
        jobs: one row per selected client, in the order in which they finish. Columns are `client` and the seconds of
            each phase in `STYLE_BY_PHASE`; for a late client, those of its whole job. `start`, negative for a job of
            an earlier round, and `finish` are seconds since the broadcast. `units` and `units_asked` are the units
            of local work done and requested. `arrived` is a flag for clients in time, `goes_on` for those that still
            work after the round, and `partial` for those that arrived with less work than requested.
        closed_s: seconds from the broadcast to the end of the round.
        announced_s: deadline that was announced to clients, in seconds; NaN without one.
        total_s: seconds of the round with queries before the broadcast, answers after its end, and waits for available
            clients; NaN if not known.
    """

    step: int
    jobs: "pd.DataFrame"
    closed_s: float
    announced_s: float
    total_s: float

    @property
    def end_s(self) -> float:
        """The seconds from the broadcast to the end of the round, or to its deadline if that is later."""
        return max(self.closed_s, self.announced_s) if np.isfinite(self.announced_s) else self.closed_s


def list_timed_rounds(history: History) -> list[int]:
    """Return the rounds with selected clients in which time passed; [] for runs that did not log their jobs.

    `history` has the run's journal and per-client table.
    """
    close_times = history.metrics.get("round/closed_s")
    return [] if close_times is None else [int(step) for step in close_times.index[close_times > 0]]


def load_timed_round(history: History, step: int) -> TimedRound:
    """Return the virtual time of round `step`, one of `list_timed_rounds`; `history` is the run's journal."""
    metrics = {str(metric): float(metric_values.loc[step]) for metric, metric_values in history.metrics.items()}
    if "round/in_flight" in metrics:
        rows = _read_jobs_in_progress(history, step, metrics["time/virtual_s"] - metrics["round/closed_s"])
    else:
        client_table = history.clients(["selected", "arrived", *STYLE_BY_PHASE, "units", "units_asked"], start=step)
        rows = client_table[(client_table["step"] == step) & client_table["selected"]].assign(start=0.0, goes_on=False)
    finish_s, is_partial = rows["start"] + rows[list(STYLE_BY_PHASE)].sum(axis=1), rows["units"] < rows["units_asked"]
    jobs = rows.assign(finish=finish_s, partial=rows["arrived"] & is_partial).sort_values(["finish", "client"])
    deadline_s, total_s = metrics.get("round/announced_s", math.nan), measure_round_lengths(history).get(step, math.nan)
    return TimedRound(step, jobs, metrics["round/closed_s"], deadline_s, float(total_s))


def _read_jobs_in_progress(history: History, step: int, start_s: float) -> "pd.DataFrame":
    """Return the jobs that were in progress in a round, one row per client.

    Args:
        history: the run's journal and per-client table.
        step: number of the round.
        start_s: virtual second of the round's broadcast.
    """
    job_columns = ["selected", "arrived", *STYLE_BY_PHASE, "units", "units_asked", "sent_s", "staleness", "in_flight"]
    client_table = history.clients(job_columns, start=1)
    latest_jobs = client_table[client_table["selected"] & (client_table["step"] <= step)].groupby("client").last()
    clients = client_table[client_table["step"] == step].set_index("client")
    is_client_at_work = clients["selected"] | clients["arrived"] | (clients["in_flight"] == 1)
    rows = latest_jobs.loc[clients.index[is_client_at_work], [*STYLE_BY_PHASE, "units_asked", "sent_s"]]
    rows = rows.assign(start=rows["sent_s"] - start_s, arrived=clients["arrived"], goes_on=clients["in_flight"] == 1)
    return rows.assign(units=rows["units_asked"]).reset_index()


def measure_round_lengths(history: History) -> "pd.Series[float]":
    """Return the virtual seconds of each round in `history`, with queries and waits, indexed by round."""
    return history.metrics["time/virtual_s"].diff().dropna()


def count_arrivals(history: History) -> "pd.DataFrame":
    """Return the number of clients that arrived with complete or partial work, and that were late, by round.

    A client that still works after the round is none of these. `history` has the run's per-client table.
    """
    job_columns = ["selected", "arrived", "units", "units_asked"]
    has_late_updates = "round/in_flight" in history.metrics
    client_table = history.clients([*job_columns, *(["in_flight"] if has_late_updates else [])], start=1)
    is_in_flight = client_table["in_flight"] == 1 if has_late_updates else np.zeros(len(client_table), dtype=bool)
    rows = client_table[(client_table["selected"] & ~is_in_flight) | client_table["arrived"]]
    is_partial = rows["arrived"] & (rows["units"] < rows["units_asked"])
    counts = rows[["step"]].assign(complete=rows["arrived"] & ~is_partial, partial=is_partial, late=~rows["arrived"])
    return counts.groupby("step").sum().reindex([step for step in history.steps if step], fill_value=0)


def draw_timeline(info: RunInfo, history: History, step: int | None = None) -> "Figure | None":
    """Return the figure of a round's jobs over virtual time; None if no time passed in it.

    Args:
        info: the run.
        history: the run's journal and per-client table.
        step: number of the round; None for the last of `list_timed_rounds`.
    """
    timed_rounds = list_timed_rounds(history)
    if not timed_rounds or (step is not None and step not in timed_rounds):
        return None
    round = load_timed_round(history, timed_rounds[-1] if step is None else step)
    n_jobs = len(round.jobs)
    # at equal distances
    jobs = round.jobs.iloc[np.unique(np.linspace(0, n_jobs - 1, min(n_jobs, MAX_JOB_ROWS)).round().astype(np.int64))]
    unit_seconds, unit = style.choose_time_unit(
        [float(min(round.jobs["finish"].max(), MAX_AXIS_MULTIPLE * round.end_s))]
    )
    height = float(np.clip(0.13 * len(jobs), 1.0, 6.0)) + 1.3
    figure = style.make_run_figure(info, describe_round(round), style.COLUMN_WIDTH, height)
    axes = figure.subplots()
    right_edge = _draw_bars(axes, round, jobs, unit_seconds)
    axes.axvline(round.closed_s / unit_seconds, color=style.BLACK, linewidth=1.4)
    if np.isfinite(round.announced_s):
        axes.axvline(round.announced_s / unit_seconds, **DEADLINE_STYLE)
    axes.set_xlim(max(float(round.jobs["start"].min()) / unit_seconds, -right_edge), right_edge)
    axes.set_ylim(len(jobs) - 0.4, -0.6)
    is_lost_job = ~(jobs["arrived"] | jobs["goes_on"])
    lost_and_flight_marks = np.where(is_lost_job, "× ", ""), np.where(jobs["goes_on"], " →", "")
    names = [
        f"{lost_mark}{client}{flight_mark}"
        for client, lost_mark, flight_mark in zip(jobs["client"], *lost_and_flight_marks, strict=True)
    ]
    axes.set_yticks(np.arange(len(jobs)), names)
    n_hidden = n_jobs - len(jobs)
    axes.set_ylabel("client, in order of finish" + (f"\n({n_hidden:,} more are not shown)" if n_hidden else ""))
    axes.set_xlabel(f"virtual time since the broadcast, {unit}")
    style.format_axes(axes, "x")
    axes.tick_params(axis="y", length=0, labelsize=style.fit_row_font(axes, len(jobs)))
    for row_label, lost_mark in zip(axes.get_yticklabels(), is_lost_job, strict=True):
        row_label.set_color(style.VERMILLION if lost_mark else style.BLACK)
    style.add_legend(figure, _list_legend_handles(round))
    return figure


def describe_round(round: TimedRound) -> str:
    """Return a text for `round`, such as "Round 12: 7 of 10 arrived, 2 with part of their work; closed after 49 s"."""
    counts = round.jobs[["arrived", "partial", "goes_on"]].sum()
    work_text = f", {counts['partial']} with part of their work" if counts["partial"] else ""
    flight_text = f", {counts['goes_on']} still at work" if counts["goes_on"] else ""
    extra_seconds = round.total_s - round.closed_s
    wait_text = (
        f" ({units.format_seconds(extra_seconds)} more for queries and waits)"
        if extra_seconds > 0.005 * round.closed_s
        else ""
    )
    close_text = f"closed after {units.format_seconds(round.closed_s)}{wait_text}"
    return f"Round {round.step}: {counts['arrived']} of {len(round.jobs)} arrived{work_text}{flight_text}; {close_text}"


def _draw_bars(axes: "Axes", round: TimedRound, jobs: "pd.DataFrame", unit_s: float) -> float:
    """Draw one bar for each job, pale after the end of the round, and return the end of the axis in the axis's unit.

    Args:
        axes: the panel.
        round: the round, with its end and deadline.
        jobs: the jobs to draw, one row per client.
        unit_s: seconds of the axis's unit.
    """
    y = np.arange(len(jobs))
    job_ends, close_time, round_end = jobs["finish"].to_numpy() / unit_s, round.closed_s / unit_s, round.end_s / unit_s
    right_edge = max(1.03 * min(float(job_ends.max()), MAX_AXIS_MULTIPLE * round_end), 1.06 * round_end)
    job_starts, is_late = jobs["start"].to_numpy() / unit_s, ~jobs["arrived"].to_numpy()
    for phase, (colour, _) in STYLE_BY_PHASE.items():
        phase_end = np.minimum(job_starts + jobs[phase].to_numpy() / unit_s, 2 * right_edge)  # the end may be infinite
        visible_end = np.where(is_late, np.minimum(phase_end, close_time), phase_end)
        axes.barh(y, np.maximum(visible_end - job_starts, 0), left=job_starts, height=0.72, color=colour, linewidth=0)
        start_after_close = np.maximum(job_starts, close_time)
        width_after_close = np.where(is_late, np.maximum(phase_end - start_after_close, 0), 0)
        axes.barh(
            y, width_after_close, left=start_after_close, height=0.72, color=colour, alpha=PALE_OPACITY, linewidth=0
        )
        job_starts = phase_end
    font_size = style.fit_row_font(axes, len(jobs))
    for i, job in enumerate(jobs.itertuples()):
        note_texts = [f"{job.units:.0f} of {job.units_asked:.0f} units"] if job.partial else []
        is_beyond_axis = job_ends[i] > right_edge
        if is_beyond_axis and not job.goes_on:
            finish_s = float(jobs["finish"].iloc[i])
            note_texts.append(f"done after {units.format_seconds(finish_s)}" if np.isfinite(finish_s) else "never done")
        if note_texts:
            text_alignment = "right" if is_beyond_axis else "left"
            text_style: dict[str, Any] = {
                "ha": text_alignment,
                "va": "center",
                "fontsize": font_size,
                "bbox": TEXT_BOX_STYLE,
                "zorder": 5,
            }
            axes.text(min(job_ends[i], right_edge), i, f" {', '.join(note_texts)} ", **text_style)
    return right_edge


def _list_legend_handles(round: TimedRound) -> "list[Artist]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    jobs = round.jobs
    min_visible_s = MIN_VISIBLE_SHARE * max(round.end_s, float(jobs["finish"].median()))
    shown_styles = [phase_style for phase, phase_style in STYLE_BY_PHASE.items() if jobs[phase].max() >= min_visible_s]
    handles: list[Artist] = [Patch(color=colour, label=phase_label) for colour, phase_label in shown_styles]
    if jobs["goes_on"].any():
        handles.append(Patch(color=style.BLUE, alpha=PALE_OPACITY, label="at work in the next round (→)"))
    if not (jobs["arrived"] | jobs["goes_on"]).all():
        handles.append(Patch(color=style.BLUE, alpha=PALE_OPACITY, label="too late (×): pale after the end"))
    handles.append(Line2D([], [], color=style.BLACK, linewidth=1.4, label="end of the round"))
    if np.isfinite(round.announced_s):
        handles.append(Line2D([], [], label="announced deadline", **DEADLINE_STYLE))
    return handles
