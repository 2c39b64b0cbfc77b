"""Annotated shapes are checked in every test, whichever way an argument is given."""

import numpy as np
import pytest

from fedcohort.maths.min_norm import min_norm_weights

START = np.ones(2) / 2


def test_a_wrong_shape_is_noticed_by_place_and_by_name() -> None:
    assert min_norm_weights(np.eye(2), START, 1.0).shape == (2,)
    for given in ((np.ones((2, 3)), START, 1.0), (np.eye(2), np.ones(2, dtype=np.int64), 1.0)):
        with pytest.raises(TypeError):
            min_norm_weights(*given)
    with pytest.raises(TypeError):
        min_norm_weights(np.eye(2), epsilon=1.0, start_weights=np.ones(2, dtype=np.int64))
