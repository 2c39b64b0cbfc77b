"""Class-conditional label noise: a wrong label is its class's partner, and nothing else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from config_options import make_component
from fedcohort.errors import OptionError
from fedcohort.label_noise.asymmetric import Asymmetric
from fedcohort.label_noise.none import NoNoise
from fedcohort.rng import Draws
from round_harness import run_without_files
from run_harness import run_training

LABELS = np.arange(3000) % 5


def flip_labels(rate: float, partners: Any = (), n_classes: int = 5) -> np.ndarray:
    noise: Any = make_component("label_noise", "asymmetric", partners=list(partners))
    labels: np.ndarray = noise.flip(LABELS, rate, n_classes, np.random.default_rng(3))
    return labels


def test_a_wrong_label_is_the_next_class() -> None:
    noisy_labels = flip_labels(0.4)
    wrong = noisy_labels != LABELS
    assert wrong.mean() == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / 3000))
    np.testing.assert_array_equal(noisy_labels[wrong], (LABELS[wrong] + 1) % 5)
    np.testing.assert_array_equal(flip_labels(1.0), (LABELS + 1) % 5)


def test_a_custom_map_can_leave_a_class_without_noise() -> None:
    """3 and 4 are mistaken for each other, 0 for 2; 1 and 2 are their own partners."""
    partners = np.array([2, 1, 2, 4, 3])
    np.testing.assert_array_equal(flip_labels(1.0, partners.tolist()), partners[LABELS])
    assert (flip_labels(0.5, partners.tolist()) != LABELS).mean() == pytest.approx(0.3, abs=0.04)


def test_the_same_labels_are_wrong_as_under_symmetric_noise() -> None:
    symmetric = NoNoise().flip(LABELS, 0.4, 5, np.random.default_rng(3))
    np.testing.assert_array_equal(flip_labels(0.4) != LABELS, symmetric != LABELS)
    assert (flip_labels(0.4) != symmetric).any()


def test_a_label_is_wrong_below_the_rate_and_not_at_it() -> None:
    """The rate 0 changes no label, not even one whose uniform number is exactly 0."""
    draws: Any = SimpleNamespace(random=lambda size: np.array([0.0, 0.25, 0.5, 0.75]))
    for rate, wrong in ((0.0, 0), (0.5, 2), (1.0, 4)):
        labels = make_component("label_noise", "asymmetric").flip(np.array([0, 1, 2, 3]), rate, 5, draws)
        assert (labels != np.array([0, 1, 2, 3])).sum() == wrong


@pytest.mark.parametrize("choice", ["none", "beta", "bimodal"])
def test_the_rates_come_from_another_label_noise_option(choice: str) -> None:
    base = make_component("label_noise", choice)
    rates = Asymmetric(base, []).rates(Draws(4, 30))
    np.testing.assert_array_equal(rates, base.rates(Draws(4, 30)))


@pytest.mark.parametrize("partners", [[1], [1, 2, 3, 4, 0, 0], [1, 2, 3, 4, 5]])
def test_partners_that_are_no_classes_are_rejected(partners: list[int]) -> None:
    with pytest.raises(OptionError, match=r"^label_noise.partners must be a list with one of the 5 classes .*, got \["):
        flip_labels(0.1, partners)


def test_it_cannot_contain_another_asymmetric_noise() -> None:
    bases: list[Any] = [make_component("label_noise", "asymmetric"), 3]
    for base in bases:
        with pytest.raises(OptionError, match=r"^base must be a label noise other than asymmetric, as in .*, got"):
            Asymmetric(base, [])


def test_a_run_with_asymmetric_noise_completes(tmp_path: Path) -> None:
    """Rates are those of the base noise, and a wrong list of partners is rejected at start-up."""
    overrides = (
        "label_noise=asymmetric",
        "label_noise@label_noise.base=bimodal",
        "label_noise.base.rate=0.4",
        "rounds=1",
    )
    run = run_without_files("heterogeneity=iid", *overrides)
    assert sorted(run.info.noise_rate) == [0.0] * 7 + [0.4] * 5
    assert (run.info.choices["label_noise"], run.info.choices["label_noise.base"]) == ("asymmetric", "bimodal")
    with pytest.raises(OptionError, match=r"^label_noise.partners must be a list with one of the 10 classes"):
        run_training(tmp_path / "b", *overrides, "label_noise.partners=[1,0]")
