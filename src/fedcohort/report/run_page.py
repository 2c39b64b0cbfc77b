"""Write `report.html`: a run on one page, from the files of its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.record.folder import status_of, write_atomically
from fedcohort.record.history import History
from fedcohort.record.observer import RunInfo
from fedcohort.record.overview import list_run_facts
from fedcohort.record.summary import read_summary
from fedcohort.report.figure import style
from fedcohort.report.figure.correlations import FACTS, PREFIX, list_facts
from fedcohort.report.picture import Picture
from fedcohort.report.render import render
from fedcohort.report.table import Table
from fedcohort.results.summary import summarise
from fedcohort.results.summary_rows import cost_rows, rows

NAME, FOLDER = "report.html", "figures"
CORRELATIONS = "What the scores correlate with"
MAX_BYTES = 3_500_000  # of all figures: base64 adds a third, and a page stays below 5 MB
SECTIONS = (  # heading, and figures with their captions
    ("Result", {"accuracy": "accuracy and loss by round"}),
    ("Data of the clients", {"partition": "classes, size, label noise and speed of each client"}),
    ("Selected clients", {"selection": "selected clients by round", "round": "the last selection, by score"}),
    ("State of the selector", {"belief": "state of the selector by round"}),
    (CORRELATIONS, {"following": "rank correlation of scores with properties of the clients"}),
    ("Virtual time", {"pace": "length of each round", "timeline": "the last round, client by client"}),
)


def write(info: RunInfo, history: History, figures: Sequence[Path], status: str | None = None) -> Path:
    """Write the page and return its path.

    Args:
        info: the run.
        history: its rounds.
        figures: the files of the figures; the page shows the PNG files.
        status: how the run ended; None for the status in its folder.
    """
    summary = _summarise(info, history, status or str(status_of(info.folder).get("status", "finished")))
    path = info.folder / NAME
    text = render(
        "run.html.j2",
        title=style.describe_run(info),
        summary=summary,
        traffic=sum(summary["bytes"].get(way) or 0.0 for way in ("down", "up")),  # these include the probes
        facts=list_run_facts(info),
        sections=list_sections(figures, mean_correlations(info, history)),
        costs=cost_rows(summary),
        metrics=_tabulate(summary),
    )
    write_atomically(path, text)
    return path


def show_in_notebook(info: RunInfo, summary: Mapping[str, Any]) -> str:
    """Return the result of a run as HTML for a notebook: the first lines of its summary, and the curve of accuracy."""
    curve = info.folder / FOLDER / "accuracy.png"
    return render(
        "run_notebook.html.j2",
        title=style.describe_run(info),
        summary=summary,
        facts=rows(summary),
        pictures=[Picture(curve, "accuracy and loss by round")] if curve.exists() else [],
        page=info.folder / NAME,
    )


def mean_correlations(info: RunInfo, history: History) -> dict[str, float]:
    """Return the scores' mean rank correlation with each property in which clients differ, largest first."""
    means = {
        FACTS[fact][1]: float(np.nanmean(values))
        for fact in list_facts(info)
        if (values := history.metrics.get(f"{PREFIX}score_{fact}")) is not None and values.notna().any()
    }
    return dict(sorted(means.items(), key=lambda item: -abs(item[1])))


def list_sections(figures: Sequence[Path], correlations: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return heading, pictures, names of figures beyond `MAX_BYTES`, and correlations of each section with figures."""
    files = {path.stem: path for path in figures if path.suffix == ".png" and path.exists()}
    sections, size = [], 0
    for heading, captions in SECTIONS:
        pictures, too_large = [], []
        for name, caption in captions.items():
            if name in files:
                size += files[name].stat().st_size
                if size <= MAX_BYTES:
                    pictures.append(Picture(files[name], caption))
                else:
                    too_large.append(files[name].name)
        if pictures or too_large:
            means = correlations if heading == CORRELATIONS else {}
            sections.append({"heading": heading, "pictures": pictures, "too_large": too_large, "correlations": means})
    return sections


def _summarise(info: RunInfo, history: History, status: str) -> Mapping[str, Any]:
    """Return the summary, with the wall time of `summary.json` if that has the same rounds: it was written later."""
    summary = summarise(info, history, status, now_ms=history.times[-1] if history.times else None)
    written = read_summary(info.folder)
    is_same = written.get("rounds") == summary["rounds"]
    return {**summary, "wall_s": written["wall_s"]} if is_same and "wall_s" in written else summary


def _tabulate(summary: Mapping[str, Any]) -> Table:
    import pandas as pd

    best = summary["best"]
    rows = [
        (name, value, best.get(name, {}).get("value"), best.get(name, {}).get("round"))
        for name, value in sorted(summary["final"].items())
    ]
    frame = pd.DataFrame(rows, columns=["metric", "last", "best", "at round"])
    return Table(frame, "", {"last": ".6g", "best": ".6g", "at round": ".0f"})
