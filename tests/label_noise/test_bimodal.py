"""Two rates of wrong labels: exactly so many clients have the first one."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.label_noise.bimodal import Bimodal
from fedcohort.rng import Draws
from run_harness import run_training


@pytest.mark.parametrize(
    ("share", "clients", "first"), [(0.4, 50, 20), (0.4, 12, 5), (0.0, 9, 0), (1.0, 9, 9), (0.5, 3, 2), (0.1, 3, 0)]
)
def test_exactly_the_given_number_of_clients_has_the_first_rate(share: float, clients: int, first: int) -> None:
    for seed in range(5):
        rates = Bimodal(share, 0.9, 0.05).rates(Draws(seed, clients))
        assert sorted(rates) == [0.05] * (clients - first) + [0.9] * first


def test_the_clients_with_the_first_rate_are_drawn() -> None:
    """Each of 10 clients is among the 4 in 0.4 of the draws: within 4.5 standard errors over 2,000 seeds."""
    frequencies = np.mean([Bimodal(0.4, 1.0, 0.0).rates(Draws(seed, 10)) for seed in range(2000)], axis=0)
    assert np.abs(frequencies - 0.4).max() < 4.5 * np.sqrt(0.24 / 2000)


def test_the_clean_oracle_receives_the_noise_rates(tmp_path: Path) -> None:
    run = run_training(tmp_path, "heterogeneity=noise_bimodal", "selector=oracle_clean", "cohort=7", "rounds=2")
    assert sorted(run.info.noise_rate) == [0.0] * 7 + [0.9] * 5
    assert run.info.choices["heterogeneity"] == "noise_bimodal"
    clean = np.flatnonzero(run.info.noise_rate == 0).tolist()
    assert [sorted(cohort) for cohort in run.cohorts] == [clean, clean]
