import numpy as np

from yaml_words import make


def test_numbers_stay_as_they_are() -> None:
    noise, values = make("signal_noise", "none"), np.arange(3.0)
    assert not noise.perturbs
    assert noise.perturb(values, np.random.default_rng(0)) is values
    assert noise.epsilon(5) == 0.0
