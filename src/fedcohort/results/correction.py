"""Holm's correction for many tests: one named family of tests for each claim that a page makes.

    IN_SETTING  C1  "in this setting the method is better": all methods of the setting
                C2  "the method is better in some settings": all settings of the method (`adjust_families`)
    ANYWHERE    C3  "in k of K settings some method is better": all methods in all settings
                C4  "the method is better over these settings": all methods that are ranked together (`adjust`)

Oracles and bounds are in no family. Tuned methods and variants count as methods (Holm 1979, Scand. J. Statist. 6).
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np

Test = TypeVar("Test", bound=Hashable)
Claim = Literal["in_setting", "anywhere"]
IN_SETTING: Claim = "in_setting"
ANYWHERE: Claim = "anywhere"


def adjust(ps: Sequence[float]) -> list[float]:
    """Return the p-values of one family adjusted by Holm's step-down rule; NaN stays NaN and is no test of the family.

    The i-th smallest of m is multiplied by m - i + 1, and none may be below a smaller one's, or above 1.
    `multipletests` of statsmodels gives the same, but runs Python's garbage collector in each call, which took most of
    a report's time.
    """
    adjusted = np.array(ps, dtype=float)
    tests = np.flatnonzero(np.isfinite(adjusted))
    order = tests[np.argsort(adjusted[tests], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(adjusted[order] * factors), 1.0)
    return [float(p) for p in adjusted]


def adjust_families(ps: Mapping[Test, float], family_of: Callable[[Test], Hashable]) -> dict[Test, float]:
    """Return the adjusted p-values in the order of `ps`, each corrected within the family that `family_of` returns."""
    families: defaultdict[Hashable, list[Test]] = defaultdict(list)
    for test in ps:
        families[family_of(test)].append(test)
    adjusted: dict[Test, float] = {}
    for tests in families.values():
        adjusted |= dict(zip(tests, adjust([ps[test] for test in tests]), strict=True))
    return {test: adjusted[test] for test in ps}


def adjust_for_claim(ps: Mapping[tuple[str, str], float], claim: Claim) -> dict[tuple[str, str], float]:
    """Return the adjusted p-values for the family of a claim; ps: p-values by setting and method."""
    return adjust_families(ps, lambda test: test[0] if claim == IN_SETTING else "")
