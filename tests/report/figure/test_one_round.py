"""The figure that explains a round: its clients, their order and their score terms, for all sizes."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort.command.figures import main
from fedcohort.errors import OptionError
from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import one_round
from fedcohort.report.figure.one_round import (
    ARRIVED,
    IDLE,
    MAX_ROWS,
    N_BEST_CLIENT_ROWS,
    TOO_LATE,
    UNAVAILABLE,
    ScoredRound,
    choose_shown_clients,
    list_scored_rounds,
    load_scored_round,
)
from optional_values import not_none
from record.example_run import make_report, make_run_info
from report.test_run_figures import check_layout, drawn_figures, read_figure_text  # noqa: F401

NAN, INF = np.nan, np.inf


def write_run(folder: Path, *rounds: Mapping[str, np.ndarray | None], clients: int = 12, cohort: int = 4) -> RunInfo:
    """A run with the made-up rounds and further columns; None removes a column."""
    facts, journal = make_run_info(folder, clients=clients), Journal()
    journal.start(facts)
    journal.observe(make_report(0, clients=clients))
    for step, columns in enumerate(rounds, start=1):
        round_report = make_report(step, clients=clients, cohort=cohort)
        table = {**round_report.clients, **columns}
        present_columns = {name: values for name, values in table.items() if values is not None}
        journal.observe(dataclasses.replace(round_report, clients=present_columns))
    journal.finish("finished")
    return facts


def ids(*clients: int) -> np.ndarray:
    return np.array(clients)


def round_of(score: list[float], outcome: list[int], **parts: list[float]) -> ScoredRound:
    columns = {name: np.array(values, float) for name, values in {"score": score, **parts}.items()}
    return ScoredRound(3, np.array(outcome), columns)


def test_the_best_come_first_and_those_without_a_score_last() -> None:
    scored_round = round_of([NAN, 1.0, INF, -INF, 2.0, 1.0], [IDLE, IDLE, ARRIVED, UNAVAILABLE, IDLE, TOO_LATE])
    assert scored_round.ranking.tolist() == [2, 4, 5, 1, 3, 0]  # 5 before 1: at equal scores those who were selected


def test_rows_are_the_best_and_all_selected_clients() -> None:
    outcome = [IDLE] * 100
    outcome[99] = outcome[98] = ARRIVED
    assert choose_shown_clients(round_of([-float(k) for k in range(100)], outcome)).tolist() == [
        *range(N_BEST_CLIENT_ROWS),
        98,
        99,
    ]
    assert choose_shown_clients(round_of([NAN] * 100, outcome)).tolist() == [98, 99]
    assert len(choose_shown_clients(round_of([0.0] * 100, [TOO_LATE] * 100))) == MAX_ROWS


def test_a_scored_round_is_loaded_as_it_was_written(tmp_path: Path) -> None:
    score, chance = np.linspace(-1, 1, 12), np.full(12, 1 / 12)
    score[3] = NAN
    facts = write_run(tmp_path / "run", {}, {"score": score, "probability": chance, "part_nothing": np.full(12, NAN)})
    original, loaded = make_report(2), load_scored_round(read_history(facts.folder), 2)
    np.testing.assert_array_equal(loaded.columns["score"], score)
    np.testing.assert_array_equal(loaded.columns["probability"], chance)
    assert sorted(loaded.columns) == ["part_explore", "probability", "score"]
    assert np.flatnonzero(loaded.outcomes == ARRIVED).tolist() == original.arrived.tolist()
    assert (
        np.flatnonzero(loaded.outcomes == TOO_LATE).tolist() == np.setdiff1d(original.cohort, original.arrived).tolist()
    )
    assert (
        np.flatnonzero(loaded.outcomes == UNAVAILABLE).tolist()
        == np.flatnonzero(~original.clients["available"]).tolist()
    )


def test_the_last_round_that_chose_by_a_score_is_explained(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
) -> None:
    without_scores, no_clients = {"score": None}, dict.fromkeys(("selected", "arrived"), np.zeros(12, dtype=bool))
    facts = write_run(tmp_path / "run", {}, {}, without_scores, no_clients)
    history = read_history(facts.folder)
    assert list_scored_rounds(history) == [1, 2]
    drawn_figures["round.png"] = not_none(one_round.draw_scored_round(facts, history))
    assert "Round 2: " in read_figure_text(drawn_figures["round.png"])


def test_a_selector_without_scores_has_no_score_figure(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = write_run(tmp_path / "run", {"score": None, "part_explore": None})
    assert one_round.draw_scored_round(facts, read_history(facts.folder)) is None
    assert main([str(facts.folder), "round=1"]) == 2
    output = " ".join(capsys.readouterr().err.split())
    assert output == "round must be left out, as selector=flash gives neither scores nor probabilities, got 1"
    assert not drawn_figures


def test_the_command_draws_the_requested_round(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = write_run(tmp_path / "run", {}, {}, {})
    assert main([str(facts.folder), "round=1"]) == 0
    assert list(drawn_figures) == ["round-1.png"]
    assert capsys.readouterr().out.strip() == str(facts.folder / "figures" / "round-1.png")
    assert main([str(facts.folder), "round=4"]) == 2
    assert "round must be one of the rounds that selected by scores or probabilities, 1 to 3, got 4" in " ".join(
        capsys.readouterr().err.split()
    )
    for mistake in ("round=x", "round=-1", "round="):
        with pytest.raises(OptionError, match=r"round must be an integer in \[1, inf\)"):
            main([str(facts.folder), mistake])


def test_bars_end_at_the_score_and_at_its_components(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    parts = {"part_exploit": np.full(12, 2.0), "part_explore": np.full(12, 1.0), "part_penalty": np.full(12, -0.5)}
    facts = write_run(tmp_path / "run", {"score": np.full(12, 2.5), **parts})
    drawn_figures["round.png"] = not_none(one_round.draw_scored_round(facts, read_history(facts.folder)))
    bar_ends = [{bar.get_width() for bar in axes.patches} for axes in drawn_figures["round.png"].axes]  # type: ignore[attr-defined]
    assert sorted(bar_ends, key=min) == [{-0.5}, {1.0}, {2.0}, {2.5}]
    assert {"score", "exploitation", "exploration", "penalty"} <= set(
        read_figure_text(drawn_figures["round.png"]).split("\n")
    )


def test_the_title_counts_score_components_that_are_not_drawn(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    parts = {
        f"part_p{i}": np.arange(12.0) + i for i in range(one_round.MAX_COMPONENT_PANELS + 1)
    }  # explore is the seventh
    facts = write_run(tmp_path / "run", parts)
    drawn_figures["round.png"] = not_none(one_round.draw_scored_round(facts, read_history(facts.folder)))
    assert "(2 more are not shown)" in read_figure_text(drawn_figures["round.png"])
    assert len(drawn_figures["round.png"].axes) == 1 + one_round.MAX_COMPONENT_PANELS


@pytest.mark.parametrize(
    ("clients", "cohort", "score"),
    [
        *((clients, cohort, "finite") for clients, cohort in ((1, 1), (50, 10), (3550, 10))),
        *((12, 4, score) for score in ("some", "none")),
        (3550, 355, "some"),
    ],
)
def test_the_score_figure_is_legible_for_any_number_of_clients(
    tmp_path: Path,
    clients: int,
    cohort: int,
    score: str,
) -> None:
    value = np.random.default_rng(0).standard_normal(clients)
    if score == "some":
        value[::3], value[1::5], value[2::7] = NAN, INF, -INF
    if score == "none":
        value[:] = NAN
    facts = write_run(
        tmp_path / "run", {"score": value, "probability": np.ones(clients)}, clients=clients, cohort=cohort
    )
    figure = one_round.draw_scored_round(facts, read_history(facts.folder))
    assert (figure is not None) is bool(make_report(1, clients=clients).cohort.size)
    if figure is None:
        return
    check_layout(figure)
    rows = len(choose_shown_clients(load_scored_round(read_history(facts.folder), 1)))
    assert f"client, label noise, most frequent class (best first, {rows} of {clients:,}" in read_figure_text(figure)
    heights = [axes.get_window_extent().height / figure.dpi for axes in figure.axes]
    assert max(heights) / rows >= 0.085  # inches: 6 points a row
