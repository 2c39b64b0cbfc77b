"""Fewer samples than there are."""

import numpy as np
import pytest

from fedcohort.errors import OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.natural import Natural
from fedcohort.startup.assign import SplitOptions, subsample_rows
from fedcohort.startup.server_rows import MIN_CLIENT_ROWS
from fedcohort.startup.split import build_federation
from federation_harness import FLASH_PARTITION, N_TRAIN, make_natural_raw, make_raw
from optional_values import not_none


@pytest.mark.parametrize("limit", [300, 61])
def test_a_limit_keeps_a_share_of_each_class(limit: int) -> None:
    source = make_raw()
    few = subsample_rows(source, limit, 0)
    share = np.bincount(source.train_y) * limit / N_TRAIN
    np.testing.assert_allclose(
        np.bincount(few.train_y, minlength=source.n_classes), np.maximum(share, MIN_CLIENT_ROWS), atol=0.5
    )
    kept_rows = few.train_x.reshape(len(few.train_y), -1)[:, 0]
    np.testing.assert_array_equal(
        source.train_y[np.isin(source.train_x.reshape(N_TRAIN, -1)[:, 0], kept_rows)], few.train_y
    )
    assert few.test_x is source.test_x


def test_a_limit_leaves_every_owner_enough() -> None:
    assert (
        np.bincount(not_none(subsample_rows(make_natural_raw(), 30, 0).train_owner)).tolist() == [MIN_CLIENT_ROWS] * 20
    )
    few = subsample_rows(make_natural_raw(), 100, 0)
    assert np.bincount(not_none(few.train_owner)).tolist() == [5] * 20
    assert (
        len(
            build_federation(
                few, SplitOptions(Natural(), NoNoise(), seed=0, clients=None, server_val=0.1, client_val=0.1)
            ).train.y
        )
        > 0
    )


def test_without_a_limit_nothing_changes() -> None:
    source = make_raw()
    assert subsample_rows(source, None, 0) is source
    assert subsample_rows(source, N_TRAIN, 0) is source


def test_a_limit_that_leaves_too_few_samples_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"needs 60 .* feasible: clients<=19, or a larger split.limit than 61"):
        build_federation(
            make_raw(),
            SplitOptions(FLASH_PARTITION, NoNoise(), seed=0, clients=20, server_val=0.05, client_val=0.1, limit=61),
        )
