"""Which rows are ranked where, from made-up results."""

from pathlib import Path

from fedcohort.study.judge import judge
from fedcohort.study.ranking import late_of, rank, share, split_rows
from study.tiny import made_up, write

CELLS = {name: {"words": ["heterogeneity=iid"]} for name in ("a", "b", "c")}
NAMED = {"random": [0.8] * 4, "flash": [0.9] * 4, "powd": [0.7] * 4}
SEEDS = [0, 1, 2, 3]


def test_ones_own_row_takes_no_regime_from_the_others(tmp_path: Path) -> None:
    """Eight of random's twelve runs: it was ranked, in the two regimes that it has, and the third was gone."""
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd"], seeds=SEEDS)
    late = {"a": {**NAMED, "mine": [1.0] * 4}, "b": {**NAMED, "mine": [1.0] * 4}, "c": NAMED}
    found = made_up(study, late)
    rows, few = split_rows(study, late_of(study, found))
    assert (rows, few) == (["random", "flash", "powd"], ["mine"])
    ranks = judge(study, found).ranks  # a study's own page has the same rule
    assert ranks is not None
    assert (list(ranks.mean), ranks.cells) == (["flash", "random", "powd"], ["a", "b", "c"])


def test_it_is_ranked_with_half_of_the_seeds_in_every_regime(tmp_path: Path) -> None:
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd"], seeds=SEEDS)
    two, one = {**NAMED, "mine": [1.0, 1.0]}, {**NAMED, "mine": [1.0]}
    late = late_of(study, made_up(study, {"a": two, "b": two, "c": two}))
    rows, few = split_rows(study, late)
    assert (rows, few) == (["random", "flash", "powd", "mine"], [])
    ranks = rank(study, late, rows)
    assert ranks is not None
    assert dict(ranks.mean) == {"mine": 1.0, "flash": 2.0, "random": 3.0, "powd": 4.0}
    assert share(late, rows) == {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    less = late_of(study, made_up(study, {"a": two, "b": two, "c": one}))
    assert split_rows(study, less)[1] == ["mine"]


def test_two_own_rows_without_a_common_seed_are_not_both_ranked(tmp_path: Path) -> None:
    """Each has half of random's seeds; with both nobody would share any."""
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd"], seeds=SEEDS)
    late = {
        cell: {**of, "mine": {0: 1.0, 1: 1.0}, "yours": {2: 1.0, 3: 1.0}}
        for cell, of in late_of(study, made_up(study, dict.fromkeys("abc", NAMED))).items()
    }
    assert split_rows(study, late) == (["random", "flash", "powd", "mine"], ["yours"])


def test_a_named_row_that_was_just_begun_is_not_ranked(tmp_path: Path) -> None:
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd"], seeds=SEEDS)
    found = made_up(study, {"a": NAMED, "b": {"random": [0.8] * 4, "flash": [0.8] * 2}, "c": {"random": [0.8] * 4}})
    # random has 12 runs, flash 6, powd 4; random and flash share a, and two seeds of b
    late = late_of(study, found)
    assert split_rows(study, late) == (["random", "flash"], ["powd"])
    assert share(late, ["random", "flash"]) == {"a": SEEDS, "b": [0, 1]}
    assert rank(study, late, ["random"]) is None
    assert judge(study, found).ranks is None
