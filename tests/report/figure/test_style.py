"""What the figures share: small multiples and file formats."""

from pathlib import Path

import pytest

from fedcohort.report.figure import style
from report.test_run_figures import check_layout


@pytest.mark.parametrize(("width", "n_columns"), [(style.COLUMN_WIDTH, 2), (style.PAGE_WIDTH, 4)])
def test_small_multiples_share_axes_and_fill_rows(width: float, n_columns: int) -> None:
    title = "a title that is far too long for one line of a column of a paper"
    names = ["a name that is too long for a panel of a column", *"bcde"]
    figure, panels = style.make_panels(names, title, "5 runs", columns=n_columns, height=0.8)
    assert len(panels) == len(figure.axes) == 5
    panels[0].set_xlim(0, 7)
    assert panels[4].get_xlim() == (0, 7)
    places = [panel.get_subplotspec() for panel in panels]
    assert max(place.colspan.start for place in places if place is not None) == n_columns - 1
    assert figure.get_figwidth() == width
    assert [panel.get_xlabel() for panel in panels] == [""] * (5 - n_columns) + ["communication round"] * n_columns
    check_layout(figure)


@pytest.mark.usefixtures("rendered_figures")
def test_a_figure_is_saved_for_screens_and_papers(tmp_path: Path) -> None:
    figure, _ = style.make_panels("a", "b", "c", columns=1, height=0.8)
    files = style.save_figure(figure, tmp_path / "a.png", ("png", "pdf", "svg"))
    assert [file.name for file in files] == ["a.png", "a.pdf", "a.svg"]
    starts = [file.read_bytes()[:5] for file in files]
    assert starts == [b"\x89PNG\r", b"%PDF-", b"<?xml"]
