"""The cache of yaml files in `cached_hydra`, and the changes of `faster_omegaconf`, change no composed config."""

import copy
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import cached_hydra
import faster_omegaconf
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
    with faster_omegaconf.uninstalled():
        assert first == second == compose_all()


def test_a_copy_of_a_config_shares_no_node_with_it() -> None:
    config = OmegaConf.create({"a": {"b": 1, "c": "${a.b}"}, "d": [1, None, 2.5]}, flags={"readonly": False})
    copied = copy.deepcopy(config)
    copied.a.b, copied.d[0] = 3, 4
    OmegaConf.set_readonly(copied.a, True)
    assert OmegaConf.to_container(config, resolve=True) == {"a": {"b": 1, "c": 1}, "d": [1, None, 2.5]}
    assert OmegaConf.to_container(copied, resolve=True) == {"a": {"b": 3, "c": 3}, "d": [4, None, 2.5]}
    assert not OmegaConf.is_readonly(config.a)
    assert copied.d._get_node(0)._get_parent() is copied.d


def test_a_changed_yaml_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("seed: 1\n")
    assert compose_with_hydra((), tmp_path).seed == 1
    (tmp_path / "train.yaml").write_text("seed: 23\n")
    assert compose_with_hydra(("seed=4",), tmp_path).seed == 4
    assert compose_with_hydra((), tmp_path).seed == 23
