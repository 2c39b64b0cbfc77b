"""No compression."""

import numpy as np
import torch

from agg_harness import make_layout
from config_options import make_component


def test_an_update_is_unchanged() -> None:
    delta = torch.tensor([1.0, -2.0, 3.0])
    codec = make_component("codec", "none")
    assert codec.transmit(delta, make_layout(3), lambda: np.random.default_rng(0)) is delta
    assert codec.bytes_up(make_layout(3)) == delta.numel() * delta.element_size()
