"""following.png: which panels and lines there are."""

from pathlib import Path

import numpy as np

from fedcohort.record.history import read
from fedcohort.report.figure import correlations
from run_harness import go

WORDS = ("+callback.journal._target_=fedcohort.record.journal.Journal", "rounds=6")


def test_a_panel_for_each_part_and_a_line_for_each_fact(tmp_path: Path) -> None:
    ran = go(tmp_path, "selector=flash", *WORDS)
    history = read(ran.folder)
    figure = correlations.draw(ran.info, history)
    assert figure is not None
    assert len(figure.axes) == 4
    parts = {correlations.score_of(str(name)) for name in history.metrics} - {None}
    assert parts == {"score", "exploit", "explore", "reward"}
    logged = history.metrics["select/score_noise"].dropna()
    assert len(logged) >= 3
    assert (np.abs(logged) <= 1).all()


def test_nothing_to_draw(tmp_path: Path) -> None:
    ran = go(tmp_path, "selector=random", *WORDS)
    assert correlations.draw(ran.info, read(ran.folder)) is None
