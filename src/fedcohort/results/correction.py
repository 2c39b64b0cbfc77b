"""Corrections for many tests: one named family for each claim that a page makes.

    IN_SETTING  C1  "in this setting the method is better": all methods of the setting
                C2  "the method is better in some settings": all settings of the method (`adjust_families`)
    ANYWHERE    C3  "in k of K settings some method is better": all methods in all settings
                C4  "the method is better over these settings": all methods that are ranked together (`adjust`)

Oracles and bounds are in no family. Tuned methods and variants count as methods. Holm (1979) is the default. Benjamini
and Hochberg (1995) is for exploration: in simulations with real effects, 15 to 20 % of settings had a false positive.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

from fedcohort import ranges

Test = TypeVar("Test", bound=Hashable)
Claim = Literal["in_setting", "anywhere"]
IN_SETTING: Claim = "in_setting"
ANYWHERE: Claim = "anywhere"
Correction = Literal["holm", "bh"]
CORRECTIONS: tuple[Correction, ...] = ("holm", "bh")


def adjust(ps: Sequence[float], correction: Correction = "holm") -> list[float]:
    """Return the adjusted p-values of one family; NaN stays NaN and is no test of the family."""
    ranges.choice("correction", correction, *CORRECTIONS)
    finite = np.array([math.isfinite(p) for p in ps], dtype=bool)
    adjusted = np.array(ps, dtype=float)
    if correction == "holm":
        adjusted[finite] = holm(adjusted[finite])
    elif finite.any():
        from scipy.stats import false_discovery_control

        adjusted[finite] = false_discovery_control(adjusted[finite])
    return [float(p) for p in adjusted]


def holm(ps: np.ndarray) -> np.ndarray:
    """Return the p-values of one family adjusted by Holm's step-down rule, at most 1.

    The i-th smallest of m is multiplied by m - i + 1, and none may be below a smaller one's. `multipletests` of
    statsmodels gives the same, but collects the process's garbage in each call, which took most of a report's time.
    """
    order = np.argsort(ps, kind="stable")
    adjusted = np.empty_like(ps)
    adjusted[order] = np.minimum(np.maximum.accumulate(ps[order] * np.arange(len(ps), 0, -1)), 1.0)
    return adjusted


def adjust_families(
    ps: Mapping[Test, float], family_of: Callable[[Test], Hashable], correction: Correction = "holm"
) -> dict[Test, float]:
    """Return the adjusted p-values in the order of `ps`, each corrected within the family that `family_of` returns."""
    families: dict[Hashable, list[Test]] = {}
    for test in ps:
        families.setdefault(family_of(test), []).append(test)
    adjusted: dict[Test, float] = {}
    for tests in families.values():
        adjusted |= dict(zip(tests, adjust([ps[test] for test in tests], correction), strict=True))
    return {test: adjusted[test] for test in ps}


def adjust_for_claim(
    ps: Mapping[tuple[str, str], float], claim: Claim, correction: Correction = "holm"
) -> dict[tuple[str, str], float]:
    """Return the adjusted p-values for the family of a claim; ps: p-values by setting and method."""
    return adjust_families(ps, lambda test: test[0] if claim == IN_SETTING else "", correction)
