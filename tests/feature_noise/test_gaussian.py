"""Gaussian noise in clients' inputs: what is disturbed, by how much, and what is not."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fedcohort.data.federation import Federation, Shard
from fedcohort.dataset.base import Raw
from fedcohort.errors import IncompatibleConfig
from fedcohort.feature_noise.gaussian import Gaussian
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.iid import Iid
from fedcohort.record import metadata
from fedcohort.rng import new_generator
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from federation_harness import make_raw
from run_harness import run_training


def make_federation(
    data: Raw | None = None, noise: Gaussian | None = None, seed: int = 0, client_val: float = 0.1
) -> Federation:
    data = make_raw(6000) if data is None else data
    options = {"seed": seed, "clients": 20, "server_val": 0.05, "client_val": client_val}
    return build_federation(data, SplitOptions(Iid(), NoNoise(), feature_noise=noise, **options))  # type: ignore[arg-type]


def split_by_client(shard: Shard) -> list[torch.Tensor]:
    return [shard.client_samples(k)[0] for k in range(20)]


def test_each_clients_noise_has_its_own_standard_deviation() -> None:
    """Of T_k and V_k together, 285 samples of one number: the error of a standard deviation is s / sqrt(2 n)."""
    plain, noisy = make_federation(client_val=0.5), make_federation(noise=Gaussian(2.0, "uniform", 0.4), client_val=0.5)
    assert noisy.feature_noise is not None
    for clean, noisy_shard in ((plain.train, noisy.train), (plain.val, noisy.val)):
        for k, (a, b) in enumerate(zip(split_by_client(clean), split_by_client(noisy_shard), strict=True)):
            level, n = noisy.feature_noise[k], len(a)
            assert float((b - a).std()) == pytest.approx(level, rel=5 / np.sqrt(2 * n), abs=1e-3)
    assert np.ptp(noisy.feature_noise) > 1


def test_only_training_inputs_get_noise() -> None:
    plain, noisy = make_federation(), make_federation(noise=Gaussian(2.0, "bimodal", 0.25))
    assert noisy.feature_noise is not None
    for name in ("test", "server_val", "server_test"):
        assert torch.equal(getattr(plain, name).x, getattr(noisy, name).x)
    for name in ("train", "val"):
        assert torch.equal(getattr(plain, name).y, getattr(noisy, name).y)
        changed = [
            not torch.equal(a, b)
            for a, b in zip(*(split_by_client(getattr(f, name)) for f in (plain, noisy)), strict=True)
        ]
        assert changed == (noisy.feature_noise > 0).tolist()
        assert sum(changed) == 5


def test_a_samples_noise_depends_on_seed_and_client() -> None:
    """The noise of client 3 is the first draws of its generator in float32, T_k before V_k."""
    plain, noisy = make_federation(), make_federation(noise=Gaussian(2.0, "bimodal", 1.0))
    rng = new_generator(0, "feature_draw", client=3)
    for shard, noisy_shard in ((plain.train, noisy.train), (plain.val, noisy.val)):
        x = split_by_client(shard)[3].numpy()
        expected = rng.standard_normal(x.shape, dtype=np.float32) * np.float32(2) + x
        np.testing.assert_array_equal(split_by_client(noisy_shard)[3].numpy(), expected)
    assert not torch.equal(make_federation(noise=Gaussian(2.0, "bimodal", 1.0), seed=1).train.x, noisy.train.x)


def test_owned_inputs_are_changed_in_place() -> None:
    """In a large population only the inputs of clients with noise change, in place."""
    raw_data = make_raw(6000, single_use=True)
    federation = make_federation(raw_data, Gaussian(2.0, "uniform", 0.4))
    assert np.shares_memory(federation.train.x.numpy(), raw_data.train_x)
    other_data = make_raw(6000)
    before = other_data.train_x.copy()
    make_federation(other_data, Gaussian(2.0, "uniform", 0.4))
    np.testing.assert_array_equal(other_data.train_x, before)


def test_inputs_that_are_no_real_numbers_are_rejected() -> None:
    integer_data = make_raw(6000, train_x=np.arange(6000)[:, None])
    with pytest.raises(
        IncompatibleConfig, match=r"^feature_noise needs real numbers, .* are of type int64: choose feature_noise=none$"
    ):
        make_federation(integer_data, Gaussian(1.0, "uniform", 0.4))
    with pytest.raises(IncompatibleConfig, match=r"are of type uint8: set dataset.pixels=float32 if the dataset has"):
        make_federation(
            make_raw(6000, train_x=np.arange(6000).astype(np.uint8)[:, None]), Gaussian(1.0, "uniform", 0.4)
        )
    assert make_federation(integer_data, Gaussian(1.0, "bimodal", 0.0)).feature_noise is None


def test_a_run_stores_the_levels_in_its_metadata(tmp_path: Path) -> None:
    trained_run = run_training(tmp_path / "a", "heterogeneity=noise_inputs", "rounds=1")
    plain = run_training(tmp_path / "b", "heterogeneity=iid", "rounds=1")
    assert trained_run.info.choices["heterogeneity"] == "noise_inputs"
    assert 0 < trained_run.info.feature_noise.min() < trained_run.info.feature_noise.max() < 0.5
    for run in (trained_run, plain):
        metadata.save_info(run.info)
    np.testing.assert_array_equal(metadata.load_info(trained_run.folder).feature_noise, trained_run.info.feature_noise)
    assert metadata.load_info(plain.folder).feature_noise is None
    assert trained_run.last.metrics["server_val/loss"] != plain.last.metrics["server_val/loss"]
    assert trained_run.reports[0].metrics["server_val/loss"] == plain.reports[0].metrics["server_val/loss"]
