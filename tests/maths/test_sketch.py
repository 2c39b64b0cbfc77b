"""Sketches of gradients by hand, and the properties that they preserve."""

import numpy as np
import pytest

from fedcohort.maths.sketch import sketch_gradient, sketch_length


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("n_params", "rate", "d"),
    [(2_230_000, 1e-5, 23), (6, 1e-5, 2), (1000, 0.01, 10), (1000, 0.0101, 11), (3, 1.0, 3)],
)
def test_sketches_have_the_requested_length(n_params: int, rate: float, d: int) -> None:
    """d' = max(2, ceil(r P)): .01 * 1000 is 10, whatever floats say."""
    assert sketch_length(n_params, rate) == d


def test_sketch_values_are_means_of_sorted_bins() -> None:
    gradient = np.array([0.1, 0.12, 0.11, -0.5, -0.52, -0.48])
    np.testing.assert_allclose(sketch_gradient(gradient, 1e-5, "values", rng()), [-0.5, 0.11], rtol=1e-12)
    permuted_sketch = sketch_gradient(gradient[[4, 0, 3, 1, 5, 2]], 1e-5, "values", rng(1))
    np.testing.assert_allclose(permuted_sketch, [-0.5, 0.11], rtol=1e-12)  # it forgets where they were


def test_a_projection_is_linear_and_keeps_inner_products_on_average() -> None:
    """E<Ra, Rb> = <a, b>: 4 standard errors of 2000 projections; the same draws for all clients."""
    a, b = rng(1).standard_normal((2, 40))
    sketch_a, sketch_b, sketch_sum = (sketch_gradient(g, 0.25, "shared_projection", rng(2)) for g in (a, b, 2 * a - b))
    np.testing.assert_allclose(sketch_sum, 2 * sketch_a - sketch_b, rtol=1e-12)
    assert len(sketch_a) == 10
    products = [
        sketch_gradient(a, 0.25, "shared_projection", rng(seed))
        @ sketch_gradient(b, 0.25, "shared_projection", rng(seed))
        for seed in range(2000)
    ]
    assert abs(np.mean(products) - a @ b) < 4 * np.std(products) / np.sqrt(2000)


@pytest.mark.parametrize("way", ["values", "shared_projection"])
@pytest.mark.parametrize("non_finite", [float("nan"), float("inf")])
def test_non_finite_vectors_have_no_sketch(way: str, non_finite: float) -> None:
    assert np.isnan(sketch_gradient(np.array([1.0, non_finite, 2.0]), 1.0, way, rng())).all()
