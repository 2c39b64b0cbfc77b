import numpy as np
import pytest

from fedcohort.maths.dirichlet import draw_dirichlet


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_the_moments_of_a_dirichlet_draw(alpha: float) -> None:
    """Dir_K(alpha): mean 1/K, variance (K - 1) / (K^2 (K alpha + 1))."""
    K, rng = 5, np.random.default_rng(0)
    p = np.stack([draw_dirichlet(alpha, K, rng) for _ in range(20_000)])
    np.testing.assert_allclose(p.sum(1), 1)
    variance = (K - 1) / (K**2 * (K * alpha + 1))
    np.testing.assert_allclose(p.mean(0), 1 / K, atol=5 * np.sqrt(variance / 20_000))
    np.testing.assert_allclose(p.var(0), variance, rtol=0.06)


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-3, 1e300])
def test_a_draw_is_defined_for_every_alpha(alpha: float) -> None:
    """For small alpha every Gamma(alpha) underflows and the usual quotient is 0 / 0."""
    for seed in range(50):
        p = draw_dirichlet(alpha, 1000, np.random.default_rng(seed))
        assert p.sum() == pytest.approx(1)
        assert (p >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_limit_alpha_zero_agrees_with_small_alphas(seed: int) -> None:
    """At 5e-324 even the logarithms overflow; at 1e-300 they don't, from the same draws."""
    limit, small = (draw_dirichlet(alpha, 50, np.random.default_rng(seed)) for alpha in (5e-324, 1e-300))
    assert limit.tolist() == small.tolist()
    assert sorted(limit)[-2:] == [0.0, 1.0]
