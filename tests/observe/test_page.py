"""A run's page: what it opens with, that it asks nobody, and that it stays small."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from fedcohort.observe import html, page
from fedcohort.observe.figures import Figures, redraw
from fedcohort.observe.page import LARGEST, follows, verdict
from fedcohort.observe.summary import Summary
from fedcohort.record.history import read
from fedcohort.record.journal import Journal
from fedcohort.record.status import RunStatus
from observe.made_up import info, play, report

ASKS = re.compile(r"https?://|src=\"(?!data:)|href=|@import|url\(|<script|<link")


def test_the_page_opens_with_what_came_of_the_run_and_asks_nobody(tmp_path: Path) -> None:
    facts = info(tmp_path / "run", changed={"selector": "flash", "client.lr": "0.2"})
    play([Journal(), Summary(full=False), Figures(), RunStatus()], facts)
    text = (tmp_path / "run" / "report.html").read_text()
    metrics = report(6).metrics
    assert "<h1>flash + scaffold on fashion_mnist, noniid30_noise15, 12 clients, seed 0</h1>" in text
    assert f"<strong>{100 * metrics['test/acc']:.1f} %</strong> test accuracy, best " in text
    assert "31 min 0 s of virtual time, 29.4 MB. Finished after 6 of 6 rounds." in text
    assert "client.lr=0.2  (the rest as in configs/)" in text
    headings = re.findall("<h2>(.*?)</h2>", text)
    expected = ["What came of it", "What the clients hold", "Who was selected", "What the selector believes"]
    assert headings == [*expected, "What it cost", "All metrics"]
    assert text.count("data:image/png;base64,") == len(list((tmp_path / "run" / "figures").iterdir())) == 5
    assert not ASKS.search(text)
    assert len(text) < 5e6
    again = text
    assert redraw(tmp_path / "run")[-1] == tmp_path / "run" / "report.html"
    assert (tmp_path / "run" / "report.html").read_text() == again, "the pictures are the same, and the numbers"


def test_a_run_without_a_summary_has_a_page_of_its_own(tmp_path: Path) -> None:
    """Or with one that is of fewer rounds: what the page says is the journal's."""
    facts = info(tmp_path / "run")
    play([Journal(), Summary(full=False)], facts, last=3, status="interrupted")
    play([Journal()], dataclasses.replace(facts, start=3))
    found = page._summary(facts, read(facts.folder), "finished")
    assert (found["rounds"], found["status"]) == (6, "finished")
    assert 0 <= found["wall_s"] < 60
    assert json.loads((facts.folder / "summary.json").read_text())["rounds"] == 3


def test_a_summary_of_an_older_fedcohort_lacks_what_that_did_not_know(tmp_path: Path) -> None:
    facts = info(tmp_path / "run")
    play([Journal(), Summary(full=False), RunStatus()], facts)
    (facts.folder / "summary.json").write_text(json.dumps({"rounds": 6, "wall_s": 12.5, "status": "finished"}))
    text = page.write(facts, read(facts.folder), []).read_text()
    assert "<td>12.5 s</td>" in text
    assert "to 90 % of its best" in text


def test_the_verdict() -> None:
    summary = {
        "final": {"test/acc": 0.5, "clients/acc_worst5": 0.25},
        "earlier": {},
        "best": {"test/acc": {"value": 0.75, "round": 2}},
        "virtual_s": 90.0,
        "bytes": {"down": 1e6, "up": 2e6, "probe": None},
        "status": "finished",
        "rounds": 3,
        "rounds_asked": 9,
        "end": "until.acc=0.7 is reached (0.75)",
    }
    assert verdict(summary) == (
        "**50.0 %** test accuracy, best 75.0 % at round 2, worst 5 % of clients 25.0 %, 90 s of virtual time, 3 MB. "
        "Finished after 3 of 9 rounds: until.acc=0.7 is reached (0.75)."
    )
    assert verdict({**summary, "earlier": {"test/acc": 2}}).startswith("**50.0 %** test accuracy of round 2, best")
    assert "worst 5 % of clients 25.0 % of round 1, 90 s" in verdict({**summary, "earlier": {"clients/acc_worst5": 1}})
    nothing = {**summary, "final": {}, "best": {}, "virtual_s": None, "bytes": {}, "end": "", "status": "interrupted"}
    assert verdict(nothing) == "Interrupted after 3 of 9 rounds."


def test_scores_follow_only_what_differs(tmp_path: Path) -> None:
    """Noise -.5 and .25 are -.12 on average; all have as many samples, whatever their correlation with chance."""
    facts, writer = info(tmp_path / "run"), Journal()
    writer.start(facts)
    for step, rho in ((1, -0.5), (2, 0.25)):
        metrics = {"select/score_noise": rho, "select/score_seconds": 2 * rho}
        writer.observe(dataclasses.replace(report(step), metrics=metrics))
    assert follows(facts, read(facts.folder)) == "expected seconds -0.25; wrong labels -0.12"
    alike = dataclasses.replace(facts, noise_rate=0 * facts.noise_rate)
    assert follows(alike, read(facts.folder)) == "expected seconds -0.25"


def test_a_picture_that_is_too_large_is_named(tmp_path: Path) -> None:
    large, small = tmp_path / "accuracy.png", tmp_path / "partition.png"
    for path, size in ((large, LARGEST + 1), (small, 24)):
        path.write_bytes(bytes(size))
    parts = "".join(page._pictures([large], ""))
    assert "<code>figures/accuracy.png</code> is too large for here." in parts
    assert "data:image" not in parts
    assert "data:image" in "".join(page._pictures([small], ""))


def test_what_a_user_wrote_is_text(tmp_path: Path) -> None:
    assert html.facts([("name", "<b>&")]) == (
        "<div class='wide sheet' tabindex=0><table class=facts><tbody>"
        "<tr><th>name</th><td>&lt;b&gt;&amp;</td></tr></tbody></table></div>"
    )
    assert "<title>&lt;i&gt;</title>" in html.document("<i>", [])


def test_texts_are_folded_and_numbers_are_not() -> None:
    """A column with one text stands at the left, with its numbers in one piece; a column of numbers is as it was."""
    text = "powd +4.7, won by more than one seed's 12.5 % [+1.5, +5.4]"
    page = html.table(
        ("regime", "seeds", "won by"), [("a", "10", "-"), ("b", "-3.2 [-4.1, -2.3], p < 0.001 (n=5)", text)]
    )
    assert "<th scope=col>seeds</th><th scope=col class=text>won by</th>" in page
    assert "<td>10</td><td class=text>-</td>" in page
    assert "<td>-3.2 [-4.1, -2.3], p &lt; 0.001 (n=5)</td>" in page
    folded = "powd <span class=number>+4.7</span>, won by more than one seed&#x27;s "
    assert f"<td class=text>{folded}<span class=number>12.5 % [+1.5, +5.4]</span></td>" in page
    assert "td.text { white-space: normal;" in html.STYLE
    assert "td, .number { white-space: nowrap; }" in html.STYLE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the less. *alone*: never, *not at all*", "the less. <em>alone</em>: never, <em>not at all</em>"),
        ("**bold *and* so** (*in brackets*)", "<strong>bold <em>and</em> so</strong> (<em>in brackets</em>)"),
        ("*the `client.lr` too*", "<em>the <code>client.lr</code> too</em>"),
        ("'*it isn't*'", "&#x27;<em>it isn&#x27;t</em>&#x27;"),
    ],
)
def test_emphasis_is_shown_as_such(text: str, shown: str) -> None:
    assert html.prose(text) == f"<p>{shown}</p>"


@pytest.mark.parametrize(
    "text",
    [
        "speed_*.csv and class_*.csv",
        "*.png, *.csv and runs/*/status.json",
        "a*b*c, f(x)*y + z*(w), 2 * a * b",
        "(*args, **kwargs) and *more",
        "p*, flash* and q*",
        "an *_odd_* name and *3* numbers",
    ],
)
def test_a_star_of_a_formula_or_of_files_stays(text: str) -> None:
    assert html.prose(text) == f"<p>{text}</p>"


def test_code_has_its_stars() -> None:
    assert html.prose("`*a*` and `n *b* c`") == "<p><code>*a*</code> and <code>n *b* c</code></p>"
