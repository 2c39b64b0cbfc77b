"""How a wrong label is drawn, with draws that the test decides."""

from typing import Any

import numpy as np

from config_options import make_component
from fedcohort.label_noise.base import LabelNoise


class FixedDraws:
    """A generator whose uniform numbers and shifts are given; it stands in for `np.random.Generator`."""

    def __init__(self, uniform: list[float], shifts: list[int]) -> None:
        self.uniform, self.shifts = np.array(uniform), np.array(shifts)

    def random(self, size: int) -> np.ndarray[Any, Any]:
        return self.uniform[:size]

    def integers(self, low: int, high: int, size: int) -> np.ndarray[Any, Any]:
        assert (low, high) == (1, 4)
        return self.shifts[:size]


def noise(option: str) -> LabelNoise:
    built: LabelNoise = make_component("label_noise", option)
    return built


def test_a_wrong_label_moves_up_by_the_shift_modulo_the_classes() -> None:
    draws: Any = FixedDraws([0.2, 0.2, 0.9, 0.2], [1, 3, 1, 2])
    # labels 0, 2, 1, 3 of four classes; the third is right: 0 + 1, (2 + 3) mod 4, 1, (3 + 2) mod 4
    np.testing.assert_array_equal(noise("bimodal").flip(np.array([0, 2, 1, 3]), 0.5, 4, draws), [1, 1, 1, 1])


def test_a_label_is_wrong_below_the_rate_and_not_at_it() -> None:
    """The rate 0 changes no label, not even one whose uniform number is exactly 0."""
    labels = np.array([0, 1, 2, 3])
    for rate, wrong in ((0.0, 0), (0.5, 2), (1.0, 4)):
        draws: Any = FixedDraws([0.0, 0.25, 0.5, 0.75], [1, 1, 1, 1])
        assert (noise("bimodal").flip(labels, rate, 4, draws) != labels).sum() == wrong


def test_labels_of_a_single_class_are_unchanged() -> None:
    labels = np.zeros(5, dtype=np.int64)
    np.testing.assert_array_equal(noise("beta").flip(labels, 1.0, 1, np.random.default_rng(0)), labels)
