from fedcohort.label_noise.none import NoNoise
from fedcohort.rng import Draws


def test_no_client_has_a_wrong_label() -> None:
    assert NoNoise().rates(Draws(0, 5)).tolist() == [0.0] * 5
