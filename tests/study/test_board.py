"""Ranks over regimes and their intervals, from made-up results."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from fedcohort.study.board import rank, redraw
from fedcohort.study.definition import Study
from fedcohort.study.paired import mean
from fedcohort.study.ranking import Late, late_of, split_rows
from study.tiny import made_up, write

LATE = {
    "equal": {
        "random": [0.80, 0.81, 0.82],
        "flash": [0.82, 0.84, 0.83],  # ahead by .02, .03 and .01: t is 3.5, p .07
        "powd": [0.79, 0.80, 0.78],  # behind by .01, .01 and .04: t is 2, p .18; flash's lead over it has p .02
        "oracle_clean": [0.9, 0.9, 0.9],
    },
    "noisy": {
        "random": [0.80, 0.80, 0.80],
        "flash": [0.70, 0.90, 0.70],  # ahead only where the second seed weighs more than half
        "powd": [0.79, 0.79, 0.79],
        "mine": [0.95, 0.95],
    },
}
ROWS = {"selectors": ["flash", "powd"], "yardsticks": ["oracle_clean"]}
ALL = {"equal": "tiny", "noisy": "tiny"}


def known(tmp_path: Path, late: Mapping[str, Mapping[str, Sequence[float]]] = LATE) -> tuple[Study, Late]:
    study = write(tmp_path, **ROWS)
    return study, late_of(study, made_up(study, late))


def test_mean_ranks_and_whom_other_seeds_would_move(tmp_path: Path) -> None:
    study, late = known(tmp_path)
    assert "oracle_clean" not in late["equal"], "a yardstick is no method"
    rows, few = split_rows(study, late)
    assert (rows, few) == (["random", "flash", "powd"], ["mine"])  # 6 runs each; two are fewer than half
    board = rank(study, late, rows, ALL)
    assert board is not None
    # `equal`: flash, random, powd; `noisy`, by means .7667, .80, .79: random, powd, flash
    assert dict(board.ranks.mean) == {"random": 1.5, "flash": 2.0, "powd": 2.5}
    assert board.seeds == {"equal": [0, 1, 2], "noisy": [0, 1, 2]}
    # in `equal` neighbours may change places, as t has it, and flash and powd don't; in `noisy` flash's mean is
    # .7 + .2 w', w' = 1/3 + 3.1 (w - 1/3), w the weight of seed 1: first where w > .39, last where w < .37.
    # w ~ Beta(1, 2), P(w > .39) = .37, P(w < .37) = .60
    assert board.places["equal"] == {"random": (2, (1, 3)), "flash": (1, (1, 2)), "powd": (3, (2, 3))}
    assert board.places["noisy"]["flash"] == (3, (1, 3))
    assert board.places["noisy"]["random"] == (1, (1, 2))
    # second in `equal` where seed 2 outweighs seed 1 by .65 or more, chance .06, and then last in `noisy`
    assert board.spread["flash"] == (1.0, 2.5)
    # second in `equal` where w_2 < .12, chance .22, and second in `noisy` where flash is last
    assert board.spread["powd"] == (2.0, 3.0)


def test_intervals_are_as_wide_as_those_of_t() -> None:
    """As drawn they had 95 % of the name alone: of three seeds 67 % of them held the truth, of five 80 %."""
    values = np.random.default_rng(0).standard_normal((1, 10)) + 5
    for n, rel in ((3, 0.12), (5, 0.08), (10, 0.08)):  # draws of few seeds are no bell
        low, high = np.percentile(redraw(values[:, :n], range(n), "tiny"), (2.5, 97.5))
        known = mean(values[0, :n].tolist())
        assert high - low == pytest.approx(2 * known.half, rel=rel)
        assert low < known.mean < high


def test_a_lead_that_is_the_same_on_all_seeds_stays(tmp_path: Path) -> None:
    study, late = known(tmp_path, {"equal": {"random": [0.8, 0.7, 0.9], "flash": [0.81, 0.71, 0.91]}})
    board = rank(study, late, ["random", "flash"], ALL)
    assert board is not None
    assert board.places["equal"] == {"random": (2, (2, 2)), "flash": (1, (1, 1))}


def test_what_has_fewer_runs_is_placed_on_its_own_seeds(tmp_path: Path) -> None:
    study, late = known(tmp_path)
    board = rank(study, late, ["random", "flash", "powd", "mine"], ALL)
    assert board is not None
    assert board.seeds == {"noisy": [0, 1]}
    # over seeds 0 and 1: mine .95; random and flash .80; powd .79
    assert dict(board.ranks.mean) == {"mine": 1.0, "random": 2.5, "flash": 2.5, "powd": 4.0}
    assert all(math.isnan(low) for low, _ in board.spread.values()), "two seeds are below win.seeds"


def test_regimes_without_all_rows_and_rows_without_others_are_no_board(tmp_path: Path) -> None:
    study, late = known(tmp_path)
    assert rank(study, late, ["random"], ALL) is None
    assert rank(study, {"equal": late["equal"]}, ["random", "mine"], ALL) is None
    assert rank(study, {}, [], {}) is None


def test_regimes_of_a_study_share_their_weights_and_others_have_their_own(tmp_path: Path) -> None:
    """Two regimes with opposite results: under common weights the mean rank is 1.5 whatever they are."""
    late = {
        "equal": {"random": [0.8, 0.8, 0.8], "flash": [0.7, 0.95, 0.7]},
        "noisy": {"random": [0.8, 0.8, 0.8], "flash": [0.9, 0.65, 0.9]},
    }
    study, found = known(tmp_path, late)
    together = rank(study, found, ["random", "flash"], ALL)
    apart = rank(study, found, ["random", "flash"], {"equal": "a", "noisy": "b"})
    assert together is not None
    assert apart is not None
    assert together.spread["flash"] == (1.5, 1.5)
    assert apart.spread["flash"] == (1.0, 2.0)
    assert together.ranks == apart.ranks
