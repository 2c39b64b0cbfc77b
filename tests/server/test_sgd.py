"""w <- w + lr G."""

import torch

from config_options import make_component


def test_a_learning_rate_of_one_is_plain_averaging() -> None:
    g = torch.tensor([1.0, -2.0], dtype=torch.float64)
    assert make_component("server", "sgd").step(None, g)[0].tolist() == [1.0, -2.0]
    assert make_component("server", "sgd", lr=0.5).step(None, g)[0].tolist() == [0.5, -1.0]
