"""The weight of a late update, by the numbers of Xie et al., and options that contradict each other."""

from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.errors import OptionError

STALENESS = np.arange(7)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"staleness": "constant"}, [1, 1, 1, 1, 1, 1, 1]),
        ({}, [1, 0.70710678, 0.57735027, 0.5, 0.4472136, 0.40824829, 0.37796447]),
        ({"staleness_exponent": 0}, [1, 1, 1, 1, 1, 1, 1]),
        ({"staleness": "hinge"}, [1, 1, 1, 1, 1, 0.09090909, 0.04761905]),
    ],
)
@pytest.mark.parametrize("choice", ["buffered", "fixed"])
def test_the_weight_falls_with_the_staleness(choice: str, options: dict[str, Any], expected: list[float]) -> None:
    """(1 + tau)^-.5 by default; the hinge is 1 / (10 (tau - 4) + 1) above 4."""
    np.testing.assert_allclose(make_component("deadline", choice, **options).discount(STALENESS), expected, rtol=1e-7)


def test_partial_work_and_work_after_the_deadline_exclude_each_other() -> None:
    assert not make_component("deadline", "fixed").carries
    assert make_component("deadline", "fixed", late_updates="carry").carries
    with pytest.raises(OptionError, match=r"late_updates=carry .* partial_work must be false, got true"):
        make_component("deadline", "fixed", late_updates="carry", partial_work=True)
