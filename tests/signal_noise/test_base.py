"""Numbers stay inside the interval where the server clips them, for every choice of the group."""

import numpy as np
import pytest

from config_options import list_options, make_component


@pytest.mark.parametrize("choice", [choice for choice in list_options("signal_noise") if choice != "none"])
def test_the_same_draws_with_and_without_the_second_clip(choice: str) -> None:
    values = np.random.default_rng(1).uniform(-3, 9, (50, 4))
    free, bound = (
        make_component("signal_noise", choice, bound=bound).perturb(values, np.random.default_rng(0))
        for bound in (False, True)
    )
    np.testing.assert_array_equal(bound, np.clip(free, 0.0, 5.0))
    assert (free > 5).any()
    assert (free < 0).any()
