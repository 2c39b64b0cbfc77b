"""A run's page: its first lines, that it loads nothing from other servers, and that it stays small."""

import dataclasses
import json
import logging
import re
from pathlib import Path

import matplotlib
import pytest

from fedcohort.console.summary import Summary
from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.record.status import RunStatus
from fedcohort.report import run_figures
from fedcohort.report.run_figures import Figures, average_score_correlations, redraw_run, write_run_page
from record.example_run import make_report, make_run_info, replay_run
from report.test_run_figures import NAMES

EXTERNAL_RESOURCE = re.compile(r"https?://|src=\"(?!data:)|href=|@import|url\(|<script|<link")


@pytest.mark.usefixtures("rendered_figures")
def test_the_page_starts_with_the_result_and_loads_nothing(tmp_path: Path) -> None:
    settings = dict(matplotlib.rcParams)
    facts = make_run_info(tmp_path / "run", changed={"selector": "flash", "client.lr": "0.2"})
    replay_run([Journal(), Summary(full=False), Figures(["png"], always=True), RunStatus()], facts)
    text = (tmp_path / "run" / "report.html").read_text()
    metrics = make_report(6).metrics
    assert "<h1>FLASH + SCAFFOLD on fashion_mnist, noniid30_noise15, 12 clients, seed 0</h1>" in text
    page_text = re.sub(r"\s+", " ", text)
    assert f"<p><strong>{100 * metrics['test/acc']:.1f} %</strong> test accuracy. Best: " in page_text
    assert "Virtual time: 31 min 0 s. Traffic: 29.4 MB. Clients selected at least once: 11 of 12." in page_text
    assert "Finished after 6 of 6 rounds.</p>" in page_text
    assert "client.lr=0.2  (the rest as in configs/)" in text
    headings = re.findall("<h2>(.*?)</h2>", text)
    expected = ["Result", "Data of the clients", "Selected clients", "State of the selector"]
    assert headings == [*expected, "Cost", "All metrics"]
    files = sorted((tmp_path / "run" / "figures").iterdir())
    assert [file.name for file in files] == NAMES
    assert all(file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for file in files)
    assert text.count("data:image/png;base64,") == len(files)
    assert dict(matplotlib.rcParams) == settings, "matplotlib's global state"
    assert logging.getLogger("matplotlib").level == logging.WARNING
    assert not EXTERNAL_RESOURCE.search(text)
    assert len(text) < 5e6
    repeat = text
    assert redraw_run(tmp_path / "run")[-1] == tmp_path / "run" / "report.html"
    assert (tmp_path / "run" / "report.html").read_text() == repeat, "the pictures are the same, and the numbers"


def test_an_outdated_summary_is_replaced_by_the_journals_values(tmp_path: Path) -> None:
    """Or with one that is of fewer rounds: what the page says is the journal's."""
    facts = make_run_info(tmp_path / "run")
    replay_run([Journal(), Summary(full=False)], facts, last=3, status="interrupted")
    replay_run([Journal()], dataclasses.replace(facts, start=3))
    summary = run_figures._summarise_run(facts, read_history(facts.folder), "finished")
    assert (summary["rounds"], summary["status"]) == (6, "finished")
    assert 0 <= summary["wall_s"] < 60
    assert json.loads((facts.folder / "summary.json").read_text())["rounds"] == 3


def test_a_summary_of_an_older_version_may_lack_fields(tmp_path: Path) -> None:
    facts = make_run_info(tmp_path / "run")
    replay_run([Journal(), Summary(full=False), RunStatus()], facts)
    (facts.folder / "summary.json").write_text(json.dumps({"rounds": 6, "wall_s": 12.5, "status": "finished"}))
    text = write_run_page(facts, read_history(facts.folder), []).read_text()
    assert "<td>12.5 s</td>" in text
    assert "to 90 % of its best" in text


def test_correlations_need_properties_that_differ(tmp_path: Path) -> None:
    """Noise -.5 and .25 are -.12 on average; all have as many samples, whatever their correlation with chance."""
    facts, writer = make_run_info(tmp_path / "run"), Journal()
    writer.start(facts)
    for step, rho in ((1, -0.5), (2, 0.25)):
        metrics = {"select/score_noise": rho, "select/score_seconds": 2 * rho}
        writer.observe(dataclasses.replace(make_report(step), metrics=metrics))
    means = average_score_correlations(facts, read_history(facts.folder))
    assert list(means.items()) == [("expected seconds", -0.25), ("label noise", -0.125)]
    equal_info = dataclasses.replace(facts, noise_rate=0 * facts.noise_rate)
    assert list(average_score_correlations(equal_info, read_history(facts.folder))) == ["expected seconds"]


def test_markup_in_a_name_is_shown_as_text(tmp_path: Path) -> None:
    """A selector, a class and a client of a user's own data may have any name."""
    attack = "<script>alert(1)</script>"
    facts = make_run_info(tmp_path / "run", labels={"0": attack}, tags={"hub": attack})
    facts = dataclasses.replace(facts, choices={**facts.choices, "selector": attack}, changed={"selector": attack})
    replay_run([Journal(), Summary(full=False), RunStatus()], facts)
    history = read_history(facts.folder)
    history.metrics[attack] = 1.0
    text = write_run_page(facts, history, []).read_text()
    assert "<script" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4, "title, choice, class, tag"
