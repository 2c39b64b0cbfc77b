"""The relative variance of the sampled update: by hand, without an effect on the run, and in known cases."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from agg_harness import make_update
from config_options import make_component
from fedcohort.errors import IncompatibleConfig
from fedcohort.round.update_variance import average_all_updates, compute_relative_variance, is_variance_measured
from fedcohort.types import ClientUpdate
from round_harness import run_without_files
from run_harness import run_training
from signal_kinds import UnimplementedAccess

METRIC = "update/relative_variance"


def test_the_relative_update_variance_by_hand() -> None:
    """G = (3, 4) and G_S = (3, 1): 9 / 25; without arrivals G_S is 0."""
    full = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert compute_relative_variance(torch.tensor([3.0, 1.0]), full) == pytest.approx(9 / 25)
    assert compute_relative_variance(None, full) == 1
    for undefined in (None, torch.zeros(2), full * math.inf):
        assert math.isnan(compute_relative_variance(full, undefined))


class Trained(UnimplementedAccess):
    """A lab in which client k trains on k + 1 samples to (k, 1), and client 3 diverges."""

    def train(self, round: int, client: int) -> ClientUpdate:
        return make_update(client, [float(client) if client < 3 else math.nan, 1.0], n=client + 1)


def test_the_update_of_all_has_the_aggregators_weights() -> None:
    """Shares 1/6, 2/6, 3/6 of the first three: (0 + 2 + 6) / 6; a plain mean has 1."""
    n_train = np.array([1, 2, 3, 4])
    for agg, expected in (("fedavg", 8 / 6), ("median", 1.0)):
        full = average_all_updates(Trained(), make_component("agg", agg), n_train, 0)
        assert full is not None
        assert full.tolist() == pytest.approx([expected, 1.0])


def test_rounds_are_counted_from_one() -> None:
    assert [is_variance_measured(round, 2) for round in range(4)] == [False, True, False, True]
    assert not is_variance_measured(0, 0)


def test_the_measurement_changes_no_result(tmp_path: Path) -> None:
    """Full participation has a variance of 0, up to the rounding of float32 updates, and four of twelve more."""
    overrides = ("partition=dirichlet", "partition.alpha=0.1", "rounds=2", "agg=scaffold")
    measured, plain = (run_training(tmp_path / f"{n}", *overrides, f"eval.update_every={n}") for n in (1, 0))
    assert [r.fingerprint for r in measured.reports] == [r.fingerprint for r in plain.reports]
    for before, after in zip(plain.reports, measured.reports, strict=True):
        assert {k: v for k, v in after.metrics.items() if k != METRIC} == before.metrics
    assert [METRIC in report.metrics for report in measured.reports] == [False, True, True]
    assert measured.last.metrics[METRIC] > 0.01
    full = run_without_files(*overrides[:3], "selector=full", "eval.update_every=2")
    assert [METRIC in report.metrics for report in full.reports] == [False, False, True]
    assert full.last.metrics[METRIC] < 1e-9
    with pytest.raises(IncompatibleConfig, match=r"^eval\.update_every=1 has clients train before"):
        run_training(tmp_path / "c", "samples=fedbalancer", "deadline=fixed", "device=phones", "eval.update_every=1")
