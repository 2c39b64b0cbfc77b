"""The map of the states of clients by round, also if there is no room for every client and round."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.report.figure import selection
from fedcohort.report.figure.one_round import ARRIVED, IDLE, TOO_LATE, UNAVAILABLE
from optional_values import not_none
from record.example_run import make_report, make_run_info
from report.test_run_figures import drawn_figures, read_figure_text, run  # noqa: F401


def test_a_coarse_selection_map_keeps_rare_outcomes() -> None:
    """Groups of two clients and two rounds: an arrival wins over lateness, that over absence of at least half."""
    idle, away, too_late, arrived = IDLE, UNAVAILABLE, TOO_LATE, ARRIVED
    outcome = np.array(
        [[idle, idle, too_late, idle], [idle, arrived, idle, too_late], [away, idle, away, idle], [away] + 3 * [idle]]
    )
    starts = np.array([0, 2])
    assert selection.coarsen_outcomes(outcome, starts, starts).tolist() == [[arrived, too_late], [away, idle]]
    assert selection.coarsen_outcomes(outcome, np.arange(4), np.arange(4)).tolist() == outcome.tolist()


def test_the_selection_map_shows_the_fate_of_each_client_and_round(tmp_path: Path) -> None:
    facts = run(tmp_path / "run")
    outcome = selection.load_outcomes(read_history(facts.folder), np.arange(12))
    assert outcome.shape == (12, 6)
    for step in range(1, 7):
        round_report = make_report(step)
        late_clients = set(round_report.cohort.tolist()) - set(round_report.arrived.tolist())
        assert np.flatnonzero(outcome[:, step - 1] == ARRIVED).tolist() == round_report.arrived.tolist()
        assert set(np.flatnonzero(outcome[:, step - 1] == TOO_LATE).tolist()) == late_clients
        unavailable_ids = np.flatnonzero(~round_report.clients["available"])
        assert np.flatnonzero(outcome[:, step - 1] == UNAVAILABLE).tolist() == unavailable_ids.tolist()


def test_a_large_population_has_rows_of_those_ever_selected(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = run(tmp_path / "run", clients=40)
    history = read_history(facts.folder)
    selected_ids = selection.find_selected_clients(history)
    assert selected_ids.tolist() == sorted(
        {k for step in range(1, 7) for k in make_report(step, clients=40).cohort.tolist()}
    )
    assert 0 < len(selected_ids) < 40
    all_outcomes = selection.load_outcomes(history, np.arange(40))
    np.testing.assert_array_equal(selection.load_outcomes(history, selected_ids), all_outcomes[selected_ids])
    monkeypatch.setattr(selection, "MAX_MAP_CELLS", 40 * 6 - 1)
    drawn_figures["selection.png"] = not_none(selection.draw_selection(facts, history))
    assert f"client, of the {len(selected_ids)} ever selected" in read_figure_text(drawn_figures["selection.png"])


def test_the_title_has_the_cohort_sizes(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    writer, facts = Journal(), make_run_info(tmp_path / "run", clients=60)
    writer.start(facts)
    all_clients = np.ones(60, dtype=bool)
    for step in range(1, 4):
        round_report = make_report(step, clients=60)
        flags = dict.fromkeys(("available", "selected", "arrived"), all_clients) if step == 1 else {}
        writer.observe(dataclasses.replace(round_report, clients={**round_report.clients, **flags}))
    drawn_figures["selection.png"] = not_none(selection.draw_selection(facts, read_history(facts.folder)))
    assert "Selection: clients by round, 4 to 60 per round" in read_figure_text(drawn_figures["selection.png"])
