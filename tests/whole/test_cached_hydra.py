"""The cache of yaml files in `cached_hydra` changes no composed config."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

import cached_hydra
from config_options import CONFIGS
from fedcohort.startup.compose import compose_with_hydra

CASES = (
    (),
    ("selector=flash", "agg=fedprox", "+callback.collect._target_=x", "seed=3"),
    ("heterogeneity=noniid30", "label_noise=none", "clients=20"),
    ("experiment=fedbalancer_celeba_cpu", "~proxy"),
)


def compose_all() -> list[str]:
    """Return the configs with their keys in order."""
    configs = [compose_with_hydra(overrides, CONFIGS) for overrides in CASES]
    return [str(OmegaConf.to_container(config)) for config in configs]


def test_hydra_composes_the_same_configs_without_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = compose_all(), compose_all()
    for owner, name, original in cached_hydra.ORIGINALS:
        monkeypatch.setattr(owner, name, original)
    assert first == second == compose_all()


def test_a_changed_yaml_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("seed: 1\n")
    assert compose_with_hydra((), tmp_path).seed == 1
    (tmp_path / "train.yaml").write_text("seed: 23\n")
    assert compose_with_hydra(("seed=4",), tmp_path).seed == 4
    assert compose_with_hydra((), tmp_path).seed == 23
