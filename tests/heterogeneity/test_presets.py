"""Presets are yaml alone: what each stands for, and that a word named by the user wins over the preset."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fedcohort.errors import OptionError
from run_harness import made
from yaml_words import CONFIGS

MAIN = """
defaults: [{partition: iid}, {label_noise: none}, {heterogeneity: noniid30_noise15}, {dataset: digits}, _self_]
clients: 50
hydra: {searchpath: ["file://CONFIGS"]}
"""


@pytest.fixture
def composed(tmp_path: Path) -> Any:
    (tmp_path / "main.yaml").write_text(MAIN.replace("CONFIGS", str(CONFIGS)))

    def compose_with(*overrides: str) -> dict[str, Any]:
        with initialize_config_dir(str(tmp_path), version_base="1.3"):
            return dict(OmegaConf.to_container(compose("main", overrides=list(overrides)), resolve=True))  # type: ignore[arg-type]

    return compose_with


SKEWED = {"_target_": "fedcohort.partition.dominant_class.DominantClass", "fraction": 0.3, "share": 0.8}
NOISY = {"_target_": "fedcohort.label_noise.beta.Beta", "a": 15}
IID = {"_target_": "fedcohort.partition.iid.Iid"}
NATURAL = {"_target_": "fedcohort.partition.natural.Natural"}
CLEAN = {"_target_": "fedcohort.label_noise.none.NoNoise"}


@pytest.mark.parametrize(
    ("preset", "partition", "label_noise"),
    [
        ("iid", IID, CLEAN),
        ("noniid30", SKEWED, CLEAN),
        ("noise15", IID, NOISY),
        ("noniid30_noise15", SKEWED, NOISY),
        ("natural", NATURAL, CLEAN),
        ("cmnist_gsc", NATURAL, CLEAN),
    ],
)
def test_a_preset_is_what_its_name_says(
    composed: Any, preset: str, partition: dict[str, Any], label_noise: dict[str, Any]
) -> None:
    """Its numbers are the defaults of the words; this test keeps them together."""
    config = composed(f"heterogeneity={preset}")
    assert config["partition"] == partition
    assert config["label_noise"] == label_noise
    assert config["heterogeneity"] == {"partition": partition, "label_noise": label_noise}


def test_every_preset_is_tested() -> None:
    assert {path.stem for path in (CONFIGS / "heterogeneity").glob("*.yaml")} == {
        "iid",
        "noniid30",
        "noise15",
        "noniid30_noise15",
        "natural",
        "cmnist_gsc",
    }


def test_the_users_words_win(composed: Any) -> None:
    config = composed("partition=dirichlet", "label_noise.a=5")
    assert config["partition"]["_target_"].endswith("Dirichlet")
    assert set(config["partition"]) == {"_target_", "alpha", "min_samples"}
    assert config["label_noise"]["a"] == 5


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ((), "noniid30_noise15"),
        (("partition=dominant_class", "label_noise.a=15"), "noniid30_noise15"),
        (("partition=dirichlet",), None),
        (("partition.fraction=0.5",), None),
        (("label_noise=none",), None),
        (("heterogeneity=noniid30", "label_noise=beta"), None),
        (("dataset=synthetic",), "natural"),
        (("dataset=synthetic", "partition=iid"), None),
    ],
)
def test_a_run_is_called_after_its_preset_only_while_that_is_true(typed: tuple[str, ...], word: str | None) -> None:
    composition = made(*typed)
    assert composition.choices.get("heterogeneity") == word
    assert "heterogeneity" not in composition.config, "the word changes no result: two ways to one run have one hash"


def test_a_presets_record_is_no_option() -> None:
    with pytest.raises(OptionError, match=r"a preset has no options, say partition.fraction=0.4"):
        made("heterogeneity.partition.fraction=0.4")


def test_synthetic_data_bring_their_own_clients(composed: Any) -> None:
    config = composed("dataset=synthetic", "clients=7")
    assert config["partition"] == NATURAL
    assert config["label_noise"] == CLEAN
    assert config["dataset"]["clients"] == 7


def test_synthetic_data_with_a_heterogeneity_named_by_the_user(composed: Any) -> None:
    config = composed("dataset=synthetic", "heterogeneity=noise15")
    assert config["partition"] == IID
    assert config["label_noise"] == NOISY
