"""Verdicts: the case of TOST, each choice once, and that a method that equals the baseline is never better."""

import math

import numpy as np

from case_loop import for_all
from fedcohort.results.difference import paired_difference
from fedcohort.results.verdict import (
    BETTER,
    DIFFERENT,
    DIVERGED,
    EQUIVALENT,
    NOT_SETTLED,
    SAME_ON_ALL_SEEDS,
    TOO_FEW_SEEDS,
    WORSE,
    Rules,
    judge_difference,
    name_verdict,
    sign_of_verdict,
    tost_p_value,
)
from results.statistics_cases import approx_nested, load_case

RULES = Rules()


def test_the_verdict_of_a_case_by_hand() -> None:
    inputs, expected = load_case(8)
    p = tost_p_value(inputs["d"], inputs["margin"])
    assert p == approx_nested(expected["p"])
    assert (p < 0.05) is expected["equivalent"]


@for_all(
    "mean, p, p_equivalent, n, verdict",
    [
        (0.02, 0.01, 0.9, 5, BETTER),
        (-0.02, 0.01, 0.9, 5, WORSE),
        (0.004, 0.01, 0.01, 5, DIFFERENT),
        (0.004, 0.2, 0.01, 5, EQUIVALENT),
        (0.02, 0.2, 0.9, 5, NOT_SETTLED),
        (0.02, math.nan, math.nan, 5, NOT_SETTLED),
        (0.02, 0.01, 0.9, 2, TOO_FEW_SEEDS),
    ],
)
def test_each_verdict_can_occur(mean: float, p: float, p_equivalent: float, n: int, verdict: str) -> None:
    assert name_verdict(mean, p, p_equivalent, n, RULES) == verdict
    mirrored = {BETTER: WORSE, WORSE: BETTER}.get(verdict, verdict)
    assert name_verdict(-mean, p, p_equivalent, n, RULES) == mirrored
    assert sign_of_verdict(verdict) == {BETTER: 1, WORSE: -1}.get(verdict, 0)


def test_without_a_test_no_method_is_better() -> None:
    base = dict(enumerate(np.random.default_rng(0).normal(size=10)))
    equal_difference = paired_difference(base, base)
    assert judge_difference(equal_difference, equal_difference.p, RULES) == SAME_ON_ALL_SEEDS
    diverged_difference = paired_difference({**base, 3: math.nan}, base)
    assert judge_difference(diverged_difference, diverged_difference.p, RULES) == DIVERGED
