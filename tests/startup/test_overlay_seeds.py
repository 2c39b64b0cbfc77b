"""Options that are composed once for many seeds equal those that are composed for each seed."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from omegaconf import DictConfig

from fedcohort.startup import compose, overlay
from fedcohort.startup.compose import compose_run
from fedcohort.startup.overlay import compose_job
from yaml_words import CONFIGS

WORDS = ("selector=flash", "heterogeneity=noise_bimodal", "agg=fedprox", "data_seed=${seed}")


def test_composing_for_many_seeds_equals_composing_each() -> None:
    for seed in (3, 0, 12):
        single = compose_run((*WORDS, f"seed={seed}"), CONFIGS)
        assert compose_job((*WORDS, f"seed={seed}"), CONFIGS) == single
        assert single.config["data_seed"] == seed


def test_methods_of_a_setting_compose_with_hydra_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study has hundreds of rows, and Hydra takes tenths of a second for a composition."""
    requested, by_hydra = list[Sequence[str]](), compose.compose_with_hydra

    def count(words: Sequence[str], configs: Path, *, with_hydra: bool = False) -> DictConfig:
        requested.append(words)
        return by_hydra(words, configs, with_hydra=with_hydra)

    monkeypatch.setattr(compose, "compose_with_hydra", count)
    overlay._overlay.cache_clear()
    for selector in ("random", "flash", "fedcbs"):
        words = ("rounds=7", "heterogeneity=noise_bimodal", f"selector={selector}")
        assert compose_job((*words, "seed=5"), CONFIGS).choices["selector"] == selector
    assert requested == [("heterogeneity=noise_bimodal",)]
    overlay._overlay.cache_clear()
