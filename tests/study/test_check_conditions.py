"""A result is the mean of as many evaluated rounds as the study says, or the study is refused."""

from pathlib import Path

import pytest

from fedcohort.errors import OptionError
from study.tiny import TINY, run, write


@pytest.mark.parametrize(
    ("late", "more", "line"),
    [
        (
            4,
            [],
            r"late must be an integer in \[1, 3\], the evaluated rounds of equal, random \(rounds=3 eval.e.*\), got 4",
        ),
        (2, ["eval.every=2"], r"late must be an integer in \[1, 1\], .* \(rounds=3 eval.every=2\), got 2"),
        (1, ["eval.every=4"], "rounds=3 eval.every=4 measures test/acc in no round"),
    ],
)
def test_a_late_mean_of_more_rounds_than_are_evaluated_is_refused(
    tmp_path: Path, late: int, more: list[str], line: str
) -> None:
    """It was the mean over all that there were, and no page said so."""
    study = write(tmp_path / "tiny", late=late, common=[*TINY["common"], *more])
    with pytest.raises(OptionError, match=line):
        run(study, tmp_path / "logs", [0])


def test_where_a_clock_ends_runs_nothing_is_asked(tmp_path: Path) -> None:
    words = [*TINY["common"], "device=shifted_exponential", "until.virtual_s=1"]
    study = write(tmp_path / "tiny", late=9, common=words, cells={"equal": {"words": ["heterogeneity=iid"]}})
    assert len(list(run(study, tmp_path / "logs", [0]).done())) == 2
