"""The baseline at a method's own cost."""

import numpy as np
import pytest

from fedcohort.results.equal_cost import baseline_at_cost


def test_it_is_interpolated_in_the_logarithm_and_never_outside() -> None:
    costs, values = np.array([4.0, 1.0, 2.0]), np.array([0.5, 0.3, 0.4])  # linear in log cost
    assert baseline_at_cost(costs, values, 2.0) == pytest.approx(0.4)
    assert baseline_at_cost(costs, values, np.sqrt(2)) == pytest.approx(0.35)
    assert baseline_at_cost(costs, values, 4.1) is None
    assert baseline_at_cost(costs, values, 0.9) is None
    assert baseline_at_cost(costs[:2], values[:2], 2.0) is None
