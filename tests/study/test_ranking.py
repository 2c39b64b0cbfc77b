"""Which rows are ranked where, from made-up results."""

import math
from pathlib import Path

import pytest

from fedcohort.study.answer import rank_methods
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


def test_the_largest_table_without_a_gap_is_ranked(tmp_path: Path) -> None:
    """Rows times regimes: what half of the methods lack takes no regime from the others, nor a regime few have them."""
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd", "oort"], seeds=SEEDS)
    two = dict.fromkeys("ab", NAMED) | {"c": {"random": [0.8] * 4}}
    found = {name: {**of, "oort": [0.6] * 4} if name == "a" else of for name, of in two.items()}
    late = late_of(study, made_up(study, found))
    # {a}: four rows; {a, b}: three rows, 6; {a, b, c}: random alone
    assert split_rows(study, late) == (["random", "flash", "powd"], ["oort"])
    assert list(share(late, ["random", "flash", "powd"])) == ["a", "b"]
    both = late_of(study, made_up(study, {"a": found["a"], "b": {"random": [0.8] * 4}, "c": {"random": [0.8] * 4}}))
    assert split_rows(study, both) == (["random", "flash", "powd", "oort"], [])  # 4 against 2 and 3
    apart = late_of(study, made_up(study, {"a": {"random": [0.8] * 4}, "b": {"flash": [0.9] * 4, "powd": [0.7] * 4}}))
    assert split_rows(study, apart) == (["random"], ["flash", "powd"]), "the baseline is in it"


SEVEN = {name: {"words": ["heterogeneity=iid"]} for name in "abcdefg"}
OVER = "over them (Wilcoxon's signed ranks of the regimes' differences, corrected by Holm for 2 methods)."


def tell_ranks(folder: Path, flash: list[float], cells: int = 7, powd: float = 0.6, least: float = 0.0) -> str:
    """What the page says where `flash` is so much better than random, regime by regime."""
    study = write(folder, cells=SEVEN, selectors=["flash", "powd"], win={"least": least})
    late = {
        cell: {"random": [0.7, 0.8], "flash": [0.7 + gap, 0.8 + gap], "powd": [powd, powd]}
        for cell, gap in zip("abcdefg"[:cells], flash, strict=False)
    }
    (line,) = rank_methods(study, judge(study, made_up(study, late)))
    return line


def test_who_beats_the_baseline_over_the_regimes(tmp_path: Path) -> None:
    gaps = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]
    # 2 / 2^7, and Holm's 2: .031; Nemenyi's distance of 1.25 is beyond the one rank that flash is ahead
    behind = "Shown to be behind it: powd."
    assert tell_ranks(tmp_path, gaps) == (
        f"Over 7 regimes flash has the best mean rank. **flash beats random** {OVER} {behind}"
    )
    assert behind not in tell_ranks(tmp_path, gaps, powd=0.75), "random's mean"
    assert behind in tell_ranks(tmp_path, gaps, powd=0.7, least=0.049)
    assert behind not in tell_ranks(tmp_path, gaps, powd=0.7, least=0.051)
    study = write(tmp_path, cells=SEVEN, selectors=["flash", "powd"])
    late = {cell: {"random": [0.7], "flash": [0.7 + gap], "powd": [0.6]} for cell, gap in zip(SEVEN, gaps, strict=True)}
    ranks = judge(study, made_up(study, late)).ranks
    assert ranks is not None
    assert ranks.distance > 1
    assert ranks.contests["flash"].p == pytest.approx(2 * 2 / 2**7)
    assert ranks.contests["flash"].median == pytest.approx(0.04)
    assert ranks.contests["powd"].median == pytest.approx(-0.1)


def test_a_lead_that_is_less_than_counts_beats_nobody(tmp_path: Path) -> None:
    """It is sure, p = .031, and .04 in the median regime: as large as one regime's difference must be to count."""
    gaps = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07]
    assert "**flash beats random**" in tell_ranks(tmp_path, gaps, least=0.039)
    said = tell_ranks(tmp_path, gaps, least=0.041)
    assert "**random isn't shown to be beaten**: the clearest is flash, whose lead in the median regime is" in said
    assert "is less than counts (p = 0.031; Wilcoxon's" in said


def test_one_loss_in_seven_regimes_is_not_enough(tmp_path: Path) -> None:
    # rank 3 is negative: sums of 3 or less are of the sets {}, 1, 2, 3 and 1 + 2, two-sided 10 / 2^7; powd, which loses
    # everywhere, has the smaller p, so that Holm leaves this one
    said = tell_ranks(tmp_path, [0.01, 0.02, -0.03, 0.04, 0.05, 0.06, 0.07])
    assert "**random isn't shown to be beaten**: the clearest is flash (p = 0.078; Wilcoxon's signed" in said


def test_few_regimes_can_not_show_it(tmp_path: Path) -> None:
    said = tell_ranks(tmp_path, [0.01, 0.02, 0.03, 0.04, 0.05], cells=5)
    # 2 methods: 2 2 / 2^6 = .0625, 2 2 / 2^7 = .031
    assert "**random isn't shown to be beaten**: 5 regimes are too few for a test to show it, which takes 7 (W" in said


def test_a_diverged_regime_counts_as_the_largest_loss(tmp_path: Path) -> None:
    # the third has rank 7: sets of ranks with sums 0 to 7 are 1 1 1 2 2 3 4 5, 19 of 2^7, two-sided 38 / 128
    said = tell_ranks(tmp_path, [0.01, 0.02, math.nan, 0.04, 0.05, 0.06, 0.07])
    assert f"the clearest is flash (p = {38 / 128:.3f};" in said


def test_ahead_is_who_is_so_in_the_ranks_too(tmp_path: Path) -> None:
    """Ahead by little in 16 regimes, behind by much in 14: ranks up to 16 sum to 136 of 465, which is behind."""
    cells = {f"c{i}": {"words": ["heterogeneity=iid"]} for i in range(30)}
    study = write(tmp_path, cells=cells, selectors=["flash", "powd"])
    gaps = [0.001 * (1 + i / 100) if i < 16 else -0.1 * (1 + i / 100) for i in range(30)]
    late = {cell: {"random": [0.7], "flash": [0.7 + gap], "powd": [0.7]} for cell, gap in zip(cells, gaps, strict=True)}
    verdict = judge(study, made_up(study, late))
    assert verdict.ranks is not None
    contest = verdict.ranks.contests["flash"]
    assert contest.median > 0
    assert (contest.side, contest.ahead) == (-1, False)
    assert contest.p < 0.1
    assert "flash beats random" not in rank_methods(study, verdict)[0]


def test_nobody_is_ahead(tmp_path: Path) -> None:
    said = tell_ranks(tmp_path, [-0.01] * 7)
    assert "**random isn't shown to be beaten**: no method is ahead of it in the median regime. Shown to be" in said
    assert said.endswith("Shown to be behind it: flash, powd.")
    assert "random itself has the best mean rank" in said


def test_equals_share_the_best_mean_rank(tmp_path: Path) -> None:
    """`flash` alone was named, as the study names it first, where `powd` had the same mean rank."""
    study = write(tmp_path, cells=CELLS, selectors=["flash", "powd"], seeds=SEEDS)
    first = {"random": [0.7] * 4, "flash": [0.9] * 4, "powd": [0.8] * 4}
    second = {"random": [0.7] * 4, "flash": [0.8] * 4, "powd": [0.9] * 4}
    found = judge(study, made_up(study, {"a": first, "b": second}))
    assert found.ranks is not None
    assert found.ranks.places() == {"flash": 1, "powd": 1, "random": 3}
    assert rank_methods(study, found)[0].startswith("Over 2 regimes flash and powd share the best mean rank, but ")
