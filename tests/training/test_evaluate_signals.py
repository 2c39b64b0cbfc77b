"""The data on which clients measure signals: their training or validation samples."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from torch import nn

from fedcohort.training.evaluate import SignalMeasurer
from training.test_evaluate import shard


def test_a_split_names_the_samples_that_are_measured() -> None:
    """Client 0 has two training samples and four validation samples."""
    train = shard()
    val = type(train)(train.x, train.y, train.y, np.array([0, 4, 4, 6]))
    federation: Any = SimpleNamespace(train=train, val=val, targets=None)
    server: Any = SimpleNamespace(network=nn.Identity())
    measurer = SignalMeasurer(server, server, federation, lambda round, client: None)  # type: ignore[arg-type,return-value]
    count = [
        measurer.mean_over_samples(split, np.array([0]), lambda logp, y: y * 0 + len(y)) for split in ("train", "val")
    ]
    assert [values.tolist() for values in count] == [[2.0], [4.0]]
