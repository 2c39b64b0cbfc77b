"""A Gaussian blur: what an impulse becomes, and what stays."""

import math
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import IncompatibleConfig
from fedcohort.feature_noise.blur import Blur
from round_harness import run_without_files
from run_harness import run_training

BLUR = Blur(2.0, "uniform", 0.4)


def blur_images(x: np.ndarray, level: float) -> np.ndarray:
    images: np.ndarray = BLUR.disturb(x, level, np.random.default_rng(0))
    return images


def test_an_impulse_becomes_the_kernel() -> None:
    """g(i) g(j) with g(i) = exp(-i^2 / 2 s^2) / sum, cut off at round(4 s); channels and samples keep to themselves."""
    x = np.zeros((2, 2, 21, 25), dtype=np.float32)
    x[1, 0, 10, 12] = 1
    s = 1.5
    g = np.array([math.exp(-(i**2) / (2 * s**2)) if abs(i) <= 6 else 0.0 for i in range(-12, 13)])
    g /= g.sum()
    expected = np.zeros_like(x)
    expected[1, 0] = np.outer(g[2:-2], g)
    np.testing.assert_allclose(blur_images(x, s), expected, atol=1e-7)


@pytest.mark.parametrize("level", [1e-3, 0.3, 2.0, 1000.0])
def test_mean_brightness_stays_up_to_the_edges(level: float) -> None:
    """A mirrored image has as much outside as inside of each edge; with all blur there is every pixel has the mean."""
    x = np.random.default_rng(1).random((3, 1, 8, 6)).astype(np.float32)
    blurred_images = blur_images(x, level)
    assert blurred_images.dtype == np.float32
    np.testing.assert_allclose(blurred_images.mean((2, 3)), x.mean((2, 3)), atol=2e-5)
    if level == 1e-3:
        np.testing.assert_array_equal(blurred_images, x)
    if level == 1000:
        np.testing.assert_allclose(blurred_images, np.broadcast_to(x.mean((2, 3), keepdims=True), x.shape), atol=2e-3)


def test_more_blur_leaves_less_contrast() -> None:
    x = np.random.default_rng(1).random((1, 3, 28, 28)).astype(np.float32)
    spreads = [float(blur_images(x, level).std()) for level in (0.2, 0.5, 1.0, 2.0)]
    assert float(x.std()) >= spreads[0] > spreads[1] > spreads[2] > spreads[3]


def test_data_that_are_no_images_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        IncompatibleConfig, match=r"^feature_noise=blur needs images .*, but inputs have the shape \[60\]: choose"
    ):
        run_training(tmp_path, "dataset=synthetic", "feature_noise=blur", "client.lr=0.01")


def test_a_run_with_blur_completes() -> None:
    run = run_without_files("heterogeneity=iid", "feature_noise=blur", "feature_noise.law=bimodal", "rounds=1")
    assert sorted(run.info.feature_noise) == [0.0] * 7 + [1.0] * 5
    assert "heterogeneity" not in run.info.choices
