"""The n-th smallest is that of a whole sort, whatever the values and wherever they stand."""

import numpy as np

from case_loop import for_all
from fedcohort.maths.order_statistics import nth_smallest


@for_all("n", [1, 7, 100, 4_999, 20_000])
@for_all("kind", ["random", "sorted", "reversed", "ties", "periodic", "with inf and NaN"])
def test_the_nth_smallest_value_equals_that_of_a_sort(n: int, kind: str) -> None:
    values = np.random.default_rng(0).standard_exponential(20_000)
    if kind in ("sorted", "reversed"):
        values = np.sort(values)[:: 1 if kind == "sorted" else -1]
    if kind == "ties":
        values = np.floor(4 * values)
    if kind == "periodic":  # those that are looked at first are the largest
        values[::64] += 100.0
    if kind == "with inf and NaN":
        values[::3], values[1::3] = np.inf, np.nan
    np.testing.assert_equal(nth_smallest(values, n), np.sort(values)[n - 1])


def test_the_nth_smallest_of_few_values_is_found() -> None:
    assert [nth_smallest(np.array([3.0, 1.0, 2.0]), n) for n in (1, 2, 3)] == [1.0, 2.0, 3.0]
