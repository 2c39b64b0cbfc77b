"""The figures: drawn from the journal, whole for a resumed run, readable at every size."""

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from fedcohort.command.figures import main
from fedcohort.errors import CheckpointError
from fedcohort.record.history import read_history
from fedcohort.record.journal import Journal
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import SWEEPS_TAG
from fedcohort.report import run_figures as module
from fedcohort.report.figure import curves, partition, selector_state, style
from fedcohort.report.run_figures import Figures, draw_run
from optional_values import not_none
from record.example_run import make_report, make_run_info, replay_run

NAMES = ["accuracy.png", "belief.png", "partition.png", "round.png", "selection.png"]


@pytest.fixture
def drawn_figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """The figures by file name, neither laid out nor written, as that takes the time."""
    figures: dict[str, Figure] = {}

    def keep(figure: Figure, path: Path, formats: object = ()) -> list[Path]:
        figures[path.name] = figure
        return [path]

    monkeypatch.setattr(style, "save_figure", keep)
    return figures


def check_layout(figure: Figure) -> None:
    """Assert that a figure is as wide as a column or a page, and that no text is cut off or smaller than 5 points."""
    figure.draw_without_rendering()
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    assert width in (style.COLUMN_WIDTH, style.PAGE_WIDTH)
    assert height <= 9
    assert min(box.x0, box.y0) >= -0.02
    assert max(box.x1 - width, box.y1 - height) <= 0.02
    sizes = [float(text.get_fontsize()) for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert all(5 <= size <= style.FONT_SIZE for size in sizes)


def run(folder: Path, **changes: Any) -> RunInfo:
    facts = make_run_info(folder, **changes)
    replay_run([Journal()], facts)
    return facts


def read_figure_text(figure: Figure) -> str:
    """All the text in a figure, one on each line."""
    texts = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        texts += [axes.get_title(), axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()]
        texts += [text.get_text() for text in axes.texts]
    for legend in figure.legends:
        texts += [text.get_text() for text in legend.get_texts()]
    return "\n".join(" ".join(text.split()) for text in texts)


@pytest.mark.parametrize(("status", "page_exists"), [("interrupted", True), ("failed", False)])
def test_the_option_decides_when_figures_are_drawn(
    tmp_path: Path, drawn_figures: dict[str, Figure], status: str, page_exists: bool
) -> None:
    replay_run([Journal(), Figures(["png"], always=True)], make_run_info(tmp_path / "run"), last=3, status=status)
    assert (sorted(drawn_figures) == NAMES) == page_exists


def test_figures_are_drawn_by_default_only_on_a_terminal(
    tmp_path: Path,
    drawn_figures: dict[str, Figure],
    monkeypatch: pytest.MonkeyPatch,
    captured_log: pytest.LogCaptureFixture,
) -> None:
    """At a terminal, outside of a sweep; elsewhere only a page that is there is kept up to date."""
    for number, (is_terminal, sweep, has_page, expected) in enumerate(
        [
            (True, False, False, True),
            (True, True, False, False),
            (False, False, False, False),
            (False, True, True, True),
        ]
    ):
        drawn_figures.clear()
        captured_log.clear()
        monkeypatch.setattr(sys.stdout, "isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        facts = make_run_info(tmp_path / f"run{number}", tags={SWEEPS_TAG: "s"} if sweep else {})
        if has_page:
            facts.folder.mkdir()
            (facts.folder / "report.html").write_text("")
        replay_run([Journal(), Figures(["png"], always=False)], facts)
        assert (sorted(drawn_figures) == NAMES) == expected == bool(drawn_figures)
        is_reported = "draw the figures and the page with: " in captured_log.text
        assert is_reported == (not expected and not sweep), "a sweep has its own report"


def test_figures_have_titles_and_labels(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:
    draw_run(run(tmp_path / "run"))
    for figure in drawn_figures.values():
        assert "FLASH + SCAFFOLD on fashion_mnist, noniid30_noise15, 12 clients, seed 0" in read_figure_text(figure)
    expected = {
        "accuracy.png": ["accuracy, %", "cross-entropy, nats", "communication round (about 5 min 1"],
        "partition.png": ["class", "client", "samples, training and validation", "label noise, %", "virtual s"],
        "selection.png": [
            "client, sorted by label noise",
            "times selected",
            "selected, too late or lost",
            "unavailable",
        ],
        "round.png": [
            "Round 6: ",
            " available clients selected, ",
            "score",
            "exploration",
            "client, label noise, most frequent class (best first, 12 of 12)",
        ],
        "belief.png": ["theta[duration]", "communication round", "mean and 95 % interval"],
    }
    for name, labels in expected.items():
        assert all(label in read_figure_text(drawn_figures[name]) for label in labels), name
    best = max(range(7), key=lambda step: make_report(step).metrics["test/acc"])
    assert f"best so far: {100 * make_report(best).metrics['test/acc']:.1f} % at round {best}" in read_figure_text(
        drawn_figures["accuracy.png"]
    )


def test_the_title_distinguishes_an_experiment_from_its_selector(tmp_path: Path) -> None:
    facts = make_run_info(tmp_path / "run")
    experiment = dataclasses.replace(facts, choices={**facts.choices, "experiment": "flash"})
    assert style.describe_run(experiment).startswith(
        "experiment=flash: FLASH + SCAFFOLD on fashion_mnist, noniid30_noise15, "
    )
    assert style.describe_run(facts).startswith("FLASH + SCAFFOLD on ")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> RunInfo:
    """A run of more than a hundred rounds."""
    return run(tmp_path_factory.mktemp("long") / "run", clients=5, classes=3, rounds=101)


@pytest.mark.parametrize(("clients", "classes", "rounds"), [(1, 1, 1), (2, 2, 0), (410, 12, 2), (12, 10, 3)])
def test_figures_fit_a_column_or_a_page_at_every_size(
    tmp_path: Path, drawn_figures: dict[str, Figure], clients: int, classes: int, rounds: int
) -> None:
    facts = make_run_info(tmp_path / "run", clients=clients, classes=classes, rounds=rounds)
    choices = {**facts.choices, "partition": "dominant_class", "label_noise": "beta", "experiment": "flash_literal"}
    del choices["heterogeneity"]  # then the note has all options
    options = {"partition": {"fraction": 0.123456, "share": 0.987654}, "label_noise": {"a": 15}}
    facts = dataclasses.replace(facts, choices=choices, config={**facts.config, **options})
    replay_run([Journal()], facts)
    draw_run(facts)
    assert {"accuracy.png", "partition.png"} <= drawn_figures.keys()
    for figure in drawn_figures.values():
        check_layout(figure)


@pytest.mark.parametrize(
    ("longest", "unit"),
    [(200.0, "seconds"), (3000.0, "minutes"), (20_000.0, "hours"), (1e6, "days"), (np.nan, "seconds")],
)
def test_the_unit_of_virtual_time_fits_its_size(longest: float, unit: str) -> None:
    assert style.choose_time_unit([0.0, longest])[1] == unit


def test_the_axis_of_a_run_without_virtual_time_says_so(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:
    writer, facts = Journal(), make_run_info(tmp_path / "run")
    writer.start(facts)
    for step in range(3):
        round_report = make_report(step)
        writer.observe(dataclasses.replace(round_report, metrics={**round_report.metrics, "time/virtual_s": 0.0}))
    drawn_figures["accuracy.png"] = not_none(curves.draw_accuracy(facts, read_history(facts.folder)))
    assert "communication round (without virtual time)" in read_figure_text(drawn_figures["accuracy.png"])


def test_metrics_that_were_not_measured_are_not_drawn(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:
    """Evaluated every other round, clients never, and a selector without beliefs."""
    writer, facts = Journal(), make_run_info(tmp_path / "run")
    writer.start(facts)
    for step in range(5):
        metrics = {"test/acc": 0.1 * step, "test/loss": 1.0} if step % 2 == 0 else {"comm/up_bytes": 1.0}
        writer.observe(dataclasses.replace(make_report(step), metrics=metrics, trace={}))
    draw_run(facts)
    assert sorted(drawn_figures) == ["accuracy.png", "partition.png", "round.png", "selection.png"]
    assert "clients" not in read_figure_text(drawn_figures["accuracy.png"]).split("seed 0")[1]
    (line, *_) = drawn_figures["accuracy.png"].axes[0].lines
    assert np.asarray(line.get_xdata()).tolist() == [0, 2, 4]


def test_a_partition_without_noise_or_time_has_no_panel_for_it(
    tmp_path: Path, drawn_figures: dict[str, Figure]
) -> None:
    zeros = np.zeros(12)
    drawn_figures["partition.png"] = partition.draw_partition(
        make_run_info(tmp_path, noise_rate=zeros, expected_s=zeros)
    )
    texts = read_figure_text(drawn_figures["partition.png"])
    assert "Partition: classes and samples of each client" in texts
    assert "equal for all" not in texts
    assert not re.search("label noise|virtual|input noise", texts)
    assert len(drawn_figures["partition.png"].axes) == 3  # the heat map, the sizes, the colour bar
    drawn_figures["partition.png"] = partition.draw_partition(make_run_info(tmp_path, noise_rate=zeros))
    assert "Partition: classes, speed and samples of each client" in read_figure_text(drawn_figures["partition.png"])


def test_very_unequal_sizes_have_a_logarithmic_axis(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:
    for largest, scale in ((19, "linear"), (40, "log")):
        counts = np.full((12, 2), 10)
        counts[3] *= largest
        drawn_figures["partition.png"] = partition.draw_partition(make_run_info(tmp_path, class_counts=counts))
        (sizes,) = [axes for axes in drawn_figures["partition.png"].axes if axes.get_xlabel().startswith("samples")]
        assert sizes.get_xscale() == scale


def test_both_validation_curves_are_thin_lines(
    drawn_figures: dict[str, Figure], long: RunInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "MAX_RAW_POINTS", 100)
    drawn_figures["accuracy.png"] = not_none(curves.draw_accuracy(long, read_history(long.folder)))
    accuracy, loss = drawn_figures["accuracy.png"].axes
    for axes, name, scale in ((accuracy, "acc", 100.0), (loss, "loss", 1.0)):
        (line,) = [line for line in axes.lines if line.get_label() == "server's validation set"]
        assert line.get_linewidth() == curves.THIN_LINE_WIDTH
        values = np.array([scale * make_report(s, clients=5).metrics[f"server_val/{name}"] for s in range(102)])
        means = curves.smooth_values(pd.Series(values), 3)
        np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), means)


def test_the_title_counts_panels_that_are_left_out(tmp_path: Path, drawn_figures: dict[str, Figure]) -> None:
    writer, facts = Journal(), make_run_info(tmp_path / "run")
    writer.start(facts)
    for step in range(3):
        writer.observe(dataclasses.replace(make_report(step), trace={f"arm {k}": (0.0, 1.0) for k in range(50)}))
    drawn_figures["belief.png"] = not_none(selector_state.draw_selector_state(facts, read_history(facts.folder)))
    assert "(first 24 of 50)" in read_figure_text(drawn_figures["belief.png"])
    assert len(drawn_figures["belief.png"].axes) == 24


def test_a_failing_figure_does_not_fail_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captured_log: pytest.LogCaptureFixture
) -> None:
    def refuse(*args: object) -> None:
        raise ValueError("a font is missing")

    monkeypatch.setattr(partition, "draw_partition", refuse)
    replay_run([Journal(), Figures(["png"], always=True)], make_run_info(tmp_path / "run"))
    assert re.search(
        r"the figures could not be drawn \(a font is missing\); draw them with: \S*fedcohort figures /",
        captured_log.text,
    )


def test_the_command_draws_the_figures_again(
    tmp_path: Path, drawn_figures: dict[str, Figure], capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run(tmp_path / "run")
    assert main([str(facts.folder)]) == 0
    assert sorted(drawn_figures) == NAMES
    assert str(facts.folder / "figures" / "belief.png") in capsys.readouterr().out
    assert main([str(tmp_path)]) == 2
    assert "is not the folder of a run" in capsys.readouterr().err
    with pytest.raises(CheckpointError):
        module.redraw_run(tmp_path)
