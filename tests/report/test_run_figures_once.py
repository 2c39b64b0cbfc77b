"""Properties that are equal for all clients are a line of text; clients are sorted by one in which they differ."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.report.figure import curves, partition, selection
from optional_values import not_none
from record.example_run import make_report, make_run_info
from report.test_run_figures import drawn_figures, read_figure_text  # noqa: F401


def test_equal_properties_are_a_line_of_text(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    """12 clients of 30 samples each, all in one order of classes; 60 virtual seconds of 27 samples are 2.2 each."""
    counts, ones = np.full((12, 2), 15), np.ones(12)
    equal_properties: dict[str, Any] = {
        "class_counts": counts,
        "noise_rate": 0.1 * ones,
        "n_train": np.full(12, 27),
        "expected_s": 60 * ones,
    }
    drawn_figures["partition.png"] = partition.draw_partition(make_run_info(tmp_path, **equal_properties))
    sentences = ("10 % label noise", "a full job takes 2.2 virtual s per sample")
    expected = f"equal for all clients: {'; '.join(sentences)}; 30 samples per client (training and validation)"
    assert " ".join(drawn_figures["partition.png"].get_supxlabel().split()) == expected
    assert len(drawn_figures["partition.png"].axes) == 2  # the heat map and the colour bar
    assert "client\n" in read_figure_text(drawn_figures["partition.png"]), "in the order of their ids"


def test_curves_by_time_are_drawn_where_rounds_differ() -> None:
    """Of a run of 4 rounds: the second half twice as slow is off by 1/2 - 1/3 in the middle."""
    steps = np.arange(5.0)
    assert curves.rounds_are_equal(3 * steps, steps)
    assert curves.rounds_are_equal(np.zeros(5), steps)
    assert not curves.rounds_are_equal(np.array([0.0, 1, 2, 4, 6]), steps)


def test_clients_are_sorted_by_a_property_that_selection_is_correlated_with(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
) -> None:
    """Client k has k % wrong labels; the round selects the four with the fewest, so that counts follow it backwards."""
    facts, writer = make_run_info(tmp_path / "run", noise_rate=np.arange(12) / 100), Journal()
    writer.start(facts)
    few, all_clients = np.arange(12) < 4, np.ones(12, dtype=bool)
    for step in range(1, 4):
        flags = {"available": all_clients, "selected": few, "arrived": few}
        writer.observe(dataclasses.replace(make_report(step), clients={**make_report(step).clients, **flags}))
    drawn_figures["selection.png"] = not_none(selection.draw_selection(facts, read_history(facts.folder)))
    figure = drawn_figures["selection.png"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [str(k) for k in range(11, -1, -1)]
    assert "Selection: clients by round, 4 per round" in read_figure_text(figure)
    # ranks 0 to 11, squares 143 about their mean; those of the counts are 9.5 four times, 3.5 eight times, squares 96;
    # products 4 (1.5 - 5.5) (9.5 - 5.5) + 8 (7.5 - 5.5) (3.5 - 5.5) = -96: -96 / sqrt(143 96) = -0.819
    assert "(rank correlation with label noise -0.82)" in read_figure_text(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "selected, arrived",
        "available, not selected",
    ]
    assert len(figure.axes) == 3
