import numpy as np

from config_options import make_component


def test_without_signal_noise_reported_numbers_are_unchanged() -> None:
    noise, values = make_component("signal_noise", "none"), np.arange(3.0)
    assert not noise.perturbs
    assert noise.perturb(values, np.random.default_rng(0)) is values
    assert noise.epsilon(5) == 0.0
