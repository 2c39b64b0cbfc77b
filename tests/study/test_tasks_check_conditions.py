"""A study whose runs do not evaluate its metric up to the horizon is rejected before its first run."""

from pathlib import Path

import pytest

from fedcohort.errors import OptionError
from study.small_study import SMALL_STUDY, run_study, write_study


@pytest.mark.parametrize(
    ("horizon", "overrides", "line"),
    [
        (
            4,
            [],
            r"horizon must be an integer in \[1, 3\], the evaluated rounds of equal, random \(rounds=3 eval.*\), or",
        ),
        (1, ["eval.every=2"], r"horizon must be an integer in \[2, 3\], .* \(rounds=3 eval.every=2\), or null, got 1"),
        (None, ["eval.every=4"], "rounds=3 eval.every=4 measures test/acc in no round"),
    ],
)
def test_a_horizon_without_an_evaluation_is_rejected(
    tmp_path: Path, horizon: int | None, overrides: list[str], line: str
) -> None:
    study = write_study(tmp_path / "tiny", horizon=horizon, common=[*SMALL_STUDY["common"], *overrides])
    with pytest.raises(OptionError, match=line):
        run_study(study, tmp_path / "logs", [0])
