"""A round and a run on the clock: phases of clients, late clients, and the text if nothing takes time."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fedcohort.command.figures import main
from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.report.figure import curves, timeline
from fedcohort.report.figure.style import MAX_MARKED_POINTS
from fedcohort.report.figure.timeline import (
    STYLE_BY_PHASE,
    count_arrivals,
    list_timed_rounds,
    load_timed_round,
    measure_round_lengths,
)
from fedcohort.report.run_figures import draw_run
from fedcohort.round.client_facts import ClientFacts
from optional_values import not_none
from record.example_run import make_report, make_run_info
from report.test_run_figures import drawn_figures, read_figure_text  # noqa: F401
from run_harness import run_training

JOURNAL = "+callback.journal._target_=fedcohort.record.journal.Journal"
UNIT = (2.0, 4.0, 9.0)  # seconds of an epoch: the first does 5, the second 3 of 5, others are late


def write_run(
    folder: Path,
    clients: int = 4,
    rounds: int = 3,
    is_announced: bool = True,
    probe_s: float = 0.0,
    slowest_unit_s: float = 100.0,
) -> RunInfo:
    """Rounds of 20 s, in which all clients download for 2 s, run forward passes for 1 s, and upload for 3 s."""
    facts, journal = make_run_info(folder, clients=max(clients, 12), rounds=rounds), Journal()
    journal.start(facts)
    ids = np.arange(clients)
    unit = np.resize([*UNIT, slowest_unit_s], clients)
    arrivals = np.flatnonzero(unit < 5)
    units = np.where(unit == 2.0, 5, np.where(unit == 4.0, 3, 0))
    ones = np.ones(clients)
    seconds = {"down_s": 2 * ones, "infer_s": ones, "train_s": unit * np.where(units > 0, units, 5), "up_s": 3 * ones}
    numbers = {"units": units, "units_asked": 5 * ones, **seconds}
    flags = {"available": ids, "selected": ids, "arrived": arrivals}
    table = ClientFacts(len(facts.n_train), flags, {name: (ids, values) for name, values in numbers.items()})
    for step in range(rounds + 1):
        pace_metrics = {"round/closed_s": 20.0, **({"round/announced_s": 20.0} if is_announced else {})} if step else {}
        metrics = {"time/virtual_s": (20.0 + probe_s) * step, **pace_metrics}
        round_report = dataclasses.replace(
            make_report(step), metrics=metrics, cohort=ids if step else ids[:0], arrived=arrivals
        )
        journal.observe(dataclasses.replace(round_report, clients=table if step else {}))
    journal.finish("finished")
    return facts


def test_a_timed_round_is_loaded_from_the_run_folder(tmp_path: Path) -> None:
    """Done after 2 + 1 + 10 + 3 = 16 s and 18 s; the late would have been after 51 and 506 s."""
    history = read_history(write_run(tmp_path / "run", probe_s=5.0).folder)
    assert list_timed_rounds(history) == [1, 2, 3]
    loaded = load_timed_round(history, 2)
    assert loaded.jobs["client"].tolist() == [0, 1, 2, 3]
    assert loaded.jobs["finish"].tolist() == [16.0, 18.0, 51.0, 506.0]
    assert loaded.jobs["arrived"].tolist() == [True, True, False, False]
    assert loaded.jobs["partial"].tolist() == [False, True, False, False]
    assert (loaded.closed_s, loaded.announced_s, loaded.total_s) == (20.0, 20.0, 25.0)
    assert set(STYLE_BY_PHASE) <= set(loaded.jobs)
    assert measure_round_lengths(history).tolist() == [25.0] * 3
    assert count_arrivals(history).loc[3].to_dict() == {"complete": 1, "partial": 1, "late": 2}


def test_the_timeline_states_deadline_phases_and_late_clients(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    facts = write_run(tmp_path / "run", probe_s=5.0)
    history = read_history(facts.folder)
    drawn_figures["timeline.png"] = not_none(timeline.draw_timeline(facts, history))
    drawn_figures["pace.png"] = not_none(curves.draw_round_lengths(facts, history))
    texts = read_figure_text(drawn_figures["timeline.png"])
    assert (
        "Round 3: 2 of 4 arrived, 1 with part of their work; closed after 20 s (5 s more for queries and waits)"
        in texts
    )
    for text in ("3 of 5 units", "done after 51 s", "done after 8 min 26 s", "announced deadline", "end of the round"):
        assert text in texts
    for label in (
        "download",
        "forward passes",
        "training",
        "upload",
        "too late (×): pale after the end",
    ):
        assert label in texts
    (axes,) = drawn_figures["timeline.png"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "× 2", "× 3"]
    texts = read_figure_text(drawn_figures["pace.png"])
    for text in ("arrived with part of the work", "too late or lost", "announced deadline", "communication round"):
        assert text in texts
    assert "with queries and waits" in texts


def test_bars_are_as_long_as_the_phases_and_pale_after_the_close(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],  # noqa: F811
) -> None:
    facts = write_run(tmp_path / "run")
    drawn_figures["timeline.png"] = not_none(timeline.draw_timeline(facts, read_history(facts.folder)))
    (axes,) = drawn_figures["timeline.png"].axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    bars = [(p.get_y() + p.get_height() / 2, p.get_x(), p.get_width(), p.get_alpha()) for p in boxes]
    full_bars = {
        row: [(x, width) for y, x, width, alpha in bars if round(y) == row and alpha is None and width > 0]
        for row in range(4)
    }
    assert full_bars[0] == [(0, 2), (2, 1), (3, 10), (13, 3)]
    assert full_bars[1] == [(0, 2), (2, 1), (3, 12), (15, 3)]
    assert full_bars[2] == [(0, 2), (2, 1), (3, 17)], "solid up to the close"
    pale = [(x, width) for y, x, width, alpha in bars if round(y) == 2 and alpha is not None and width > 0]
    assert pale == [(20, 28), (48, 3)]
    assert axes.get_xlim()[1] == pytest.approx(1.03 * 1.8 * 20)


def test_the_timeline_marks_a_client_that_never_finishes(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    facts = write_run(tmp_path / "run", rounds=1, slowest_unit_s=np.inf)
    assert {path.name for path in draw_run(facts)} >= {"pace.png", "timeline.png"}
    assert "never done" in read_figure_text(drawn_figures["timeline.png"])
    assert drawn_figures["timeline.png"].axes[0].get_xlim()[1] == pytest.approx(1.03 * 1.8 * 20)


@pytest.mark.parametrize("clients", [1, 100])
def test_the_timeline_is_drawn_for_any_number_of_clients(tmp_path: Path, clients: int) -> None:
    facts = write_run(tmp_path / "run", clients=clients, rounds=1, is_announced=False)
    history = read_history(facts.folder)
    figure = timeline.draw_timeline(facts, history)
    assert figure is not None
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert len(axes.get_yticks()) == min(clients, timeline.MAX_JOB_ROWS)
    texts = read_figure_text(figure)
    assert ("(40 more are not shown)" in texts) == (clients == 100)
    assert "announced deadline" not in texts


def test_the_round_length_curve_of_a_long_run_has_no_markers(tmp_path: Path) -> None:
    facts = write_run(tmp_path / "run", rounds=MAX_MARKED_POINTS + 1)
    with warnings.catch_warnings():  # the user's terminal would show matplotlib's warnings
        warnings.simplefilter("error")
        figure = curves.draw_round_lengths(facts, read_history(facts.folder))
        assert figure is not None
        figure.draw_without_rendering()
    closed = figure.axes[0].get_lines()[0]
    assert (closed.get_linestyle(), closed.get_marker()) == ("-", "")
    assert len(np.asarray(closed.get_xdata())) == MAX_MARKED_POINTS + 1


def test_a_run_without_a_clock_has_no_timeline(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:  # noqa: F811
    facts, journal = make_run_info(tmp_path / "run", rounds=1), Journal()
    journal.start(facts)
    for step in range(2):
        journal.observe(make_report(step))
    journal.finish("finished")
    history = read_history(facts.folder)
    assert timeline.draw_timeline(facts, history) is None
    assert curves.draw_round_lengths(facts, history) is None
    assert not drawn_figures


def test_the_command_draws_a_round_without_scores(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    drawn_figures: dict[str, Figure],  # noqa: F811
) -> None:
    facts = write_run(tmp_path / "run")
    assert main([str(facts.folder), "round=2"]) == 0
    assert capsys.readouterr().out.split() == [str(facts.folder / "figures" / "timeline-2.png")]
    assert list(drawn_figures) == ["timeline-2.png"]
    main([str(facts.folder), "round=9"])
    output = " ".join(capsys.readouterr().err.split())
    assert output == "round must be one of the rounds that trained clients, 1 to 3, got 9"


def test_jobs_of_several_rounds_are_shown_since_the_broadcast(tmp_path: Path) -> None:
    """A buffered run: jobs of earlier rounds begin before 0, those that arrive end before the close, others go on."""
    run = run_training(tmp_path, "deadline=buffered", "agg=fedbuff", "device=shifted_exponential", "rounds=5", JOURNAL)
    history = read_history(run.folder)
    loaded = load_timed_round(history, 5)
    jobs, arrived, is_in_flight = loaded.jobs, loaded.jobs["arrived"], loaded.jobs["goes_on"]
    assert int(arrived.sum()) == 4
    assert int(is_in_flight.sum()) == history.metrics["round/in_flight"].loc[5]
    assert not (arrived & is_in_flight).any()
    assert (jobs["start"][arrived] < 0).any()
    assert (jobs["start"] < loaded.closed_s).all()
    tolerance = 1e-6 * history.metrics["time/virtual_s"].loc[5]
    assert (jobs["finish"][arrived] <= loaded.closed_s + tolerance).all()
    assert (jobs["finish"][is_in_flight] >= loaded.closed_s - tolerance).all()
    assert count_arrivals(history)["complete"].tolist() == [4] * 5
    assert not count_arrivals(history)["late"].any()
    assert "still at work" in timeline.describe_round(loaded)
