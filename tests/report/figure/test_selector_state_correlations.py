"""following.png: which panels and lines there are."""

import dataclasses
from pathlib import Path

from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.report.figure import selector_state
from fedcohort.round import score_correlation
from optional_values import not_none
from record.example_run import make_report, make_run_info
from report.test_run_figures import check_layout, read_figure_text


def test_a_panel_for_each_score_and_a_line_for_each_property(tmp_path: Path) -> None:
    facts, writer = make_run_info(tmp_path / "run"), Journal()
    writer.start(facts)
    for step in range(3):
        metrics = {f"select/{part}_{fact}": 0.1 * step for part in ("score", "reward") for fact in ("noise", "seconds")}
        writer.observe(dataclasses.replace(make_report(step), metrics=metrics))
    figure = not_none(selector_state.draw_correlations(facts, read_history(facts.folder)))
    assert [axes.get_title("left") for axes in figure.axes] == ["score", "reward"]
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines[1:]] == ["label noise", "expected seconds"]
    shown_lines = {*read_figure_text(figure).split("\n"), figure.get_supylabel()}
    assert {"rank correlation", "communication round", "label noise", "expected seconds"} <= shown_lines
    check_layout(figure)


def test_a_run_without_correlations_has_no_correlation_figure(tmp_path: Path) -> None:
    facts, writer = make_run_info(tmp_path / "run"), Journal()
    writer.start(facts)
    writer.observe(make_report(0))
    assert selector_state.draw_correlations(facts, read_history(facts.folder)) is None
    assert set(selector_state.STYLE_BY_FACT) == set(score_correlation.CLIENT_FACTS), "the names that a run logs"
