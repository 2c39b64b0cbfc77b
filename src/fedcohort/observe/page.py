"""report.html: a run on one page, from what its folder holds."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.observe import html, progress, units
from fedcohort.observe.figure import style
from fedcohort.observe.figure.following import FACTS, PREFIX, list_facts
from fedcohort.observe.summary import WORST, cost_rows, date, summarise
from fedcohort.record.folder import status_of, write_atomically
from fedcohort.record.history import HEADLINE, History
from fedcohort.record.observer import RunInfo
from fedcohort.record.summary import read_summary

NAME = "report.html"
FOLLOWS = "What its scores follow"
LARGEST = 3_500_000  # bytes of pictures: as text they are a third more, and a page stays below 5 MB
SECTIONS = (  # heading, and pictures of `figures/` with what they show
    ("What came of it", (("accuracy.png", "accuracy and loss by round"),)),
    ("What the clients hold", (("partition.png", "classes, size, noise and speed of each client"),)),
    (
        "Who was selected",
        (("selection.png", "who was selected in which round"), ("round.png", "the last selection, by score")),
    ),
    ("What the selector believes", (("belief.png", "the selector's belief by round"),)),
    (FOLLOWS, (("following.png", "rank correlation of scores with facts of the clients"),)),
    ("On the clock", (("pace.png", "length of each round"), ("timeline.png", "the last round, client by client"))),
)


def write(info: RunInfo, history: History, drawn: Sequence[Path], status: str | None = None) -> Path:
    """Write the page with the pictures that were `drawn`; returns it. status: None for what the folder says."""
    summary = _summary(info, history, status or str(status_of(info.folder).get("status", "finished")))
    title = style.run_words(info)
    parts = [f"<h1>{escape(title)}</h1>", html.prose(verdict(summary))]
    parts += [f"<p class=warning>{escape(line)}</p>" for line in summary.get("warnings", ())]
    parts += [html.facts(progress.start_rows(info))]
    parts += _pictures(drawn, follows(info, history))
    parts += ["<h2>What it cost</h2>", html.facts(cost_rows(summary))]
    parts += ["<h2>All metrics</h2>", html.table(("metric", "last", "best", "at round"), _metrics(summary))]
    parts += [html.prose("What the names mean is in `docs/results.md`; every round's values are in `journal.jsonl`.")]
    path = info.folder / NAME
    write_atomically(path, html.document(title, parts))
    return path


def verdict(summary: Mapping[str, Any]) -> str:
    """`**93.3 %** test accuracy; best 95.3 % at round 49; ... Finished after 50 of 50 rounds: ...`, in Markdown."""
    final, best = summary["final"], summary["best"].get(HEADLINE)
    of, worst_of = (date(summary, name).replace(",", "") for name in (HEADLINE, WORST))
    said = [f"**{units.percent(final[HEADLINE])}** test accuracy{of}"] if HEADLINE in final else []
    said += [f"best {units.percent(best['value'])} at round {best['round']}"] if best else []
    said += [f"worst 5 % of clients {units.percent(w)}{worst_of}"] if (w := final.get(WORST)) is not None else []
    said += [f"{units.seconds(clock)} of virtual time"] if (clock := summary.get("virtual_s")) else []
    said += [units.bytes_(traffic)] if (traffic := _traffic(summary)) else []
    ended = f"{summary['status']} after {summary['rounds']} of {summary['rounds_asked']} rounds"
    why = f": {summary['end']}" if summary.get("end") else ""
    return f"{', '.join(said)}{'. ' if said else ''}{ended[0].upper()}{ended[1:]}{why}."


def _traffic(summary: Mapping[str, Any]) -> float:
    return sum(summary["bytes"].get(way) or 0.0 for way in ("down", "up"))  # probes are among them


def follows(info: RunInfo, history: History) -> str:
    """What the scores followed on average over the rounds in which it was measured; "" where it never was."""
    means = {
        FACTS[fact][1]: float(np.nanmean(values))
        for fact in list_facts(info)
        if (values := history.metrics.get(f"{PREFIX}score_{fact}")) is not None and values.notna().any()
    }
    ordered = sorted(means, key=lambda label: -abs(means[label]))
    return "; ".join(f"{label} {means[label]:+.2f}" for label in ordered)


def _summary(info: RunInfo, history: History, status: str) -> Mapping[str, Any]:
    """Sum the run up; its wall time is that of `summary.json` where that is of the same rounds: it ended later."""
    fresh = summarise(info, history, status, now_ms=history.times[-1] if history.times else None)
    found = read_summary(info.folder)
    same = found.get("rounds") == fresh["rounds"]
    return {**fresh, "wall_s": found["wall_s"]} if same and "wall_s" in found else fresh


def _pictures(drawn: Sequence[Path], followed: str) -> list[str]:
    """Return the sections for which there are pictures; what would make the page too large is named instead."""
    there, parts, left = {path.name: path for path in drawn if path.exists()}, [], LARGEST
    for heading, pictures in SECTIONS:
        found = [(there[name], what) for name, what in pictures if name in there]
        parts += [f"<h2>{heading}</h2>"] if found else []
        if found and followed and heading == FOLLOWS:
            parts.append(html.prose(f"Mean rank correlation of scores over the rounds: {followed}."))
        for path, what in found:
            size = path.stat().st_size
            fits, left = size <= left, left - size
            parts.append(
                html.picture(path, what) if fits else html.prose(f"`figures/{path.name}` is too large for here.")
            )
    return parts


def _metrics(summary: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    best = summary["best"]
    return [
        (
            name,
            f"{value:.6g}",
            f"{best[name]['value']:.6g}" if name in best else "",
            str(best[name]["round"]) if name in best else "",
        )
        for name, value in sorted(summary["final"].items())
    ]
