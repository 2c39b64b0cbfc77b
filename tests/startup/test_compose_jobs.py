"""Configs of jobs that are composed from few compositions by Hydra equal those that Hydra composes."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from hydra.errors import HydraException
from omegaconf import DictConfig

from config_options import CONFIGS, list_options, load_yaml
from fedcohort.startup import compose, compose_jobs
from fedcohort.startup.check import GROUPS_WITH_TORCH, GROUPS_WITHOUT_TORCH
from fedcohort.startup.compose import Composition, compose_config, compose_run
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.startup.load import DATA_GROUPS
from run_harness import compose_by_hydra, compose_overrides


def by_hydra(*overrides: str) -> Composition:
    cfg = compose_by_hydra(overrides)
    return compose_config(cfg, cfg.hydra.runtime.choices, overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ("selector=flash", "agg=scaffold", "rounds=7", "client.lr=0.5", "selector.gamma_scale=0", "paths.logs=/x/y"),
        (
            "dataset=synthetic",
            "clients=5",
            "model.hidden=[3,4]",
            "dataset.max_samples=null",
            "name=mine",
            "resume=true",
        ),
        (
            "agg=fedprox",
            "regulariser.mu=1e-3",
            "+callback.mine._target_=a.b",
            "callback.figures=null",
            "seed=${cohort}",
        ),
        ("experiment=flash_literal", "~callback.progress", "selector.delta=0.1", "agg.weighting=uniform"),
        ("model=logreg", "selector=ucb_cs", "agg=scaffold", "server=adam", "codec=quant", "selector.discount=0.5"),
        (
            "callback=none",
            "logger=none",
            "deadline=fixed",
            "device=instant",
            "proxy=noise",
            "clients=9",
            "engine=debug",
        ),
        ("partition=dirichlet", "objective=gce", "client=adam", "+callback.x._target_=a.B", "heterogeneity=noise15"),
        ("agg=fedsgd", "client=adam", "selector=neural_bandit", "availability=bernoulli", "dataset=synthetic"),
        ("experiment=flash", "selector=random", "agg=term", "samples=random", "attack=loss_inflation"),
        ("objective=propfair", "objective@objective.base=gce", "regulariser=prox", "~callback.progress"),
        ("agg=propfair", "selector=oort", "heterogeneity=natural", "partition=iid"),
        ("heterogeneity=noniid30", "agg=qffl", "proxy=noise", "deadline=fixed", "deadline.k=2"),
        ("agg=scaffold", "agg.weighting=${name}"),
        ("agg=qffl", "agg=scaffold"),
        ("dataset=synthetic", "selector=flash", "objective=gce", "deadline=fixed"),
        ("dataset=folder", "dataset.client=site", "agg=scaffold", "model=mlp"),
        ("agg=fedprox", "deadline=fixed"),
        ("agg=fedprox", "deadline=fixed", "regulariser=none"),
        ("agg=fedprox", "selector=flash", "client=adam"),
        ("agg=rhfl", "objective=gce", "proxy=noise"),
        ("agg=rhfl", "agg.beta=0", "proxy=noise", "selector=powd"),
        ("experiment=fedmaba_cifar10_cpu", "model=logreg", "agg=term"),
        ("experiment=fedmaba_cifar10_cpu", "codec=quant", "deadline=fixed"),
    ],
)
def test_the_overlay_composes_like_hydra(overrides: tuple[str, ...]) -> None:
    assert compose_overrides(*overrides) == by_hydra(*overrides)


def test_each_kind_of_override_is_applied_like_hydra() -> None:
    groups = ("agg", "server", "objective", "codec", "client", "deadline", "device")
    overrides = ("model=mlp", *(f"{group}={list_options(group)[-1]}" for group in groups))
    composition, hydra_composition = compose_overrides(*overrides), by_hydra(*overrides)
    for group in groups:
        assert composition.config[group] == hydra_composition.config[group], group
    assert composition == hydra_composition


@pytest.mark.parametrize("override", ["objective@objective.base=gce", "+agg=scaffold"])
def test_overrides_that_hydra_rejects_are_rejected(override: str) -> None:
    with pytest.raises(HydraException):
        compose_overrides(override)


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The overrides of each composition by Hydra, which takes tenths of a second."""
    requested, by_hydra = list[Sequence[str]](), compose.compose_with_hydra

    def count(overrides: Sequence[str], config_dir: Path) -> DictConfig:
        requested.append(overrides)
        return by_hydra(overrides, config_dir)

    monkeypatch.setattr(compose, "compose_with_hydra", count)
    uncached = vars(compose_jobs._compose_pickled)["__wrapped__"]
    monkeypatch.setattr(compose_jobs, "_compose_pickled", cache(uncached))  # other tests keep their compositions
    return requested


def test_overrides_of_our_groups_compose_with_hydra_once(requested: list[Sequence[str]]) -> None:
    for group in sorted({*GROUPS_WITHOUT_TORCH, *GROUPS_WITH_TORCH} - {*DATA_GROUPS}):
        for choice in list_options(group):
            if "defaults" not in load_yaml(CONFIGS / group / f"{choice}.yaml"):
                assert compose_job((f"{group}={choice}",), CONFIGS).choices[group] == choice
                assert requested == [()], (group, choice)


OVERRIDES = ("selector=flash", "heterogeneity=noise_bimodal", "agg=fedprox", "data_seed=${seed}")


def test_composing_for_many_seeds_equals_composing_each() -> None:
    for seed in (3, 0, 12):
        single = compose_run((*OVERRIDES, f"seed={seed}"), CONFIGS)
        assert compose_job((*OVERRIDES, f"seed={seed}"), CONFIGS) == single
        assert single.config["data_seed"] == seed


def test_methods_of_a_setting_compose_with_hydra_once(requested: list[Sequence[str]]) -> None:
    """A study has hundreds of rows."""
    for selector in ("random", "flash", "fedcbs"):
        overrides = ("rounds=7", "heterogeneity=noise_bimodal", f"selector={selector}")
        assert compose_job((*overrides, "seed=5"), CONFIGS).choices["selector"] == selector
    assert requested == [("heterogeneity=noise_bimodal",)]
