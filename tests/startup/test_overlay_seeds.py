"""Words composed once for many seeds are what each seed's words are composed to."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from omegaconf import DictConfig

from fedcohort.startup import compose, overlay
from fedcohort.startup.compose import run_of
from fedcohort.startup.overlay import job_of
from yaml_words import CONFIGS

WORDS = ("selector=flash", "heterogeneity=noise_bimodal", "agg=fedprox", "data_seed=${seed}")


def test_a_family_is_its_members() -> None:
    for seed in (3, 0, 12):
        own = run_of((*WORDS, f"seed={seed}"), CONFIGS)
        assert job_of((*WORDS, f"seed={seed}"), CONFIGS) == own
        assert own.config["data_seed"] == seed


def test_rows_of_a_regime_ask_hydra_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study has hundreds of rows, and Hydra takes tenths of a second for a composition."""
    asked, by_hydra = list[Sequence[str]](), compose.by_hydra

    def count(words: Sequence[str], configs: Path, *, with_hydra: bool = False) -> DictConfig:
        asked.append(words)
        return by_hydra(words, configs, with_hydra=with_hydra)

    monkeypatch.setattr(compose, "by_hydra", count)
    overlay._overlay.cache_clear()
    for selector in ("random", "flash", "fedcbs"):
        words = ("rounds=7", "heterogeneity=noise_bimodal", f"selector={selector}")
        assert job_of((*words, "seed=5"), CONFIGS).choices["selector"] == selector
    assert asked == [("heterogeneity=noise_bimodal",)]
    overlay._overlay.cache_clear()
