"""No feature noise: nothing is drawn and nothing is changed."""

import numpy as np

from fedcohort.feature_noise.none import NoFeatureNoise
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.iid import Iid
from fedcohort.rng import Draws
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from federation_harness import make_federation, make_raw


def test_no_inputs_are_changed() -> None:
    assert NoFeatureNoise().levels(Draws(0, 5)).tolist() == [0.0] * 5
    x = np.ones((2, 3), dtype=np.float32)
    assert NoFeatureNoise().disturb(x, 1.0, np.random.default_rng(0)) is x


def test_the_federation_equals_one_without_the_group() -> None:
    data = {"seed": 0, "clients": 20, "server_val": 0.05, "client_val": 0.1}
    federation = build_federation(make_raw(), SplitOptions(Iid(), NoNoise(), feature_noise=NoFeatureNoise(), **data))  # type: ignore[arg-type]
    plain = make_federation(partition=Iid())
    assert federation.feature_noise is None
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(federation, part).x, getattr(plain, part).x)
