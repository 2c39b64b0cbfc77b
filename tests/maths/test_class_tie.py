"""Draws that are tied to the clients' main classes."""

import numpy as np
import pytest

from fedcohort.errors import IncompatibleConfig
from fedcohort.maths.class_tie import tie_draws_to_classes
from fedcohort.rng import Draws

OPTION = "device.class_share"


def test_a_tied_draw_lies_in_the_part_of_its_class() -> None:
    """Of four classes, class 2 has [.5, .75): a draw of .4 becomes (2 + .4) / 4 = .6."""
    draws = Draws(0, 3, main_classes=np.array([2, 0, 3]), n_classes=4)
    assert tie_draws_to_classes(np.array([0.4, 0.4, 0.8]), draws, 1.0, OPTION) == pytest.approx([0.6, 0.1, 0.95])


def test_draws_stay_uniform_and_the_given_share_is_tied() -> None:
    main_classes = np.arange(10_000) % 10
    draws = Draws(0, 10_000, main_classes=main_classes, n_classes=10)
    uniform = draws.uniform("test")
    for probability in (0.0, 0.3, 1.0):
        tied = tie_draws_to_classes(uniform, draws, probability, OPTION)
        assert np.histogram(tied, 10, (0, 1))[0] == pytest.approx(np.full(10, 1000), abs=5 * np.sqrt(900))
        assert (tied != uniform).mean() == pytest.approx(probability, abs=0.02)
        matches_class = np.floor(10 * tied) == main_classes
        assert matches_class.mean() == pytest.approx(probability + (1 - probability) / 10, abs=0.02)


def test_the_same_clients_are_tied_in_every_round_and_more_with_a_larger_probability() -> None:
    main_classes = np.full(200, 9)
    rounds = [Draws(0, 200, t, main_classes, 10) for t in (0, 5)]
    few, repeat = (tie_draws_to_classes(np.zeros(200), draws, 0.3, OPTION) > 0 for draws in rounds)
    higher_share = tie_draws_to_classes(np.zeros(200), rounds[0], 0.6, OPTION) > 0
    assert (few == repeat).all()
    assert (higher_share | ~few).all()
    assert 0 < few.sum() < higher_share.sum() < 200


def test_samples_with_several_classes_are_rejected() -> None:
    with pytest.raises(IncompatibleConfig, match=r"device\.class_share=0\.5 needs samples with one class each"):
        tie_draws_to_classes(np.zeros(2), Draws(0, 2), 0.5, OPTION)
