"""Numbers stay inside the interval where the server clips them, for every choice of the group."""

import numpy as np
import pytest

from config_options import list_options, make_component


@pytest.mark.parametrize("choice", [choice for choice in list_options("signal_noise") if choice != "none"])
def test_a_second_clip_does_not_change_the_drawn_noise(choice: str) -> None:
    values = np.random.default_rng(1).uniform(-3, 9, (50, 4))
    unbounded, bounded = (
        make_component("signal_noise", choice, bound=bounded).perturb(values, np.random.default_rng(0))
        for bounded in (False, True)
    )
    np.testing.assert_array_equal(bounded, np.clip(unbounded, 0.0, 5.0))
    assert (unbounded > 5).any()
    assert (unbounded < 0).any()
