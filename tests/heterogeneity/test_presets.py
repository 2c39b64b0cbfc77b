"""Presets are yaml files only: the choices that each sets, and that a choice of the user overrides the preset."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from config_options import CONFIGS, to_dict
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.startup import check, components
from feddiverse_tables import FEDDIVERSE
from run_harness import compose_overrides

MAIN = """
defaults:
  - {partition: iid}
  - {label_noise: none}
  - {feature_noise: none}
  - {heterogeneity: noniid30_noise15}
  - {dataset: digits}
  - _self_
clients: 50
hydra: {searchpath: ["file://CONFIGS"]}
"""


@pytest.fixture
def compose_preset(tmp_path: Path) -> Any:
    (tmp_path / "main.yaml").write_text(MAIN.replace("CONFIGS", str(CONFIGS)))

    def compose_with(*overrides: str) -> dict[str, Any]:
        with initialize_config_dir(str(tmp_path), version_base="1.3"):
            return to_dict(compose("main", overrides=list(overrides)))

    return compose_with


SKEWED = {"_target_": "fedcohort.partition.dominant_class.DominantClass", "fraction": 0.3, "share": 0.8}
NOISY = {"_target_": "fedcohort.label_noise.beta.Beta", "a": 15, "concentration": 100}
TWO_RATES = {"_target_": "fedcohort.label_noise.bimodal.Bimodal", "share": 0.4, "rate": 0.9, "other": 0.0}
IID = {"_target_": "fedcohort.partition.iid.Iid"}
NATURAL = {"_target_": "fedcohort.partition.natural.Natural"}
CLEAN = {"_target_": "fedcohort.label_noise.none.NoNoise"}
NO_FEATURE_NOISE = {"_target_": "fedcohort.feature_noise.none.NoFeatureNoise"}
GAUSSIAN = {"_target_": "fedcohort.feature_noise.gaussian.Gaussian", "sigma": 0.5, "law": "uniform", "share": 0.4}


@pytest.mark.parametrize(
    ("preset", "partition", "label_noise"),
    [
        ("iid", IID, CLEAN),
        ("noniid30", SKEWED, CLEAN),
        ("noise15", IID, NOISY),
        ("noniid30_noise15", SKEWED, NOISY),
        ("noise_bimodal", IID, TWO_RATES),
        ("noise_inputs", IID, CLEAN),
        ("natural", NATURAL, CLEAN),
        ("cmnist_gsc", NATURAL, CLEAN),
    ],
)
def test_a_preset_has_the_options_of_its_name(
    compose_preset: Any, preset: str, partition: dict[str, Any], label_noise: dict[str, Any]
) -> None:
    """The numbers of the preset equal the defaults of its choices; this test keeps them equal."""
    config = compose_preset(f"heterogeneity={preset}")
    assert config["partition"] == partition
    assert config["label_noise"] == label_noise
    assert config["feature_noise"] == (GAUSSIAN if preset == "noise_inputs" else NO_FEATURE_NOISE)
    record = {"partition": partition, "label_noise": label_noise, "feature_noise": config["feature_noise"]}
    assert config["heterogeneity"] == record


def test_every_preset_is_tested() -> None:
    assert {path.stem for path in (CONFIGS / "heterogeneity").glob("*.yaml")} == {
        "iid",
        "noniid30",
        "noise15",
        "noniid30_noise15",
        "noise_bimodal",
        "noise_inputs",
        "natural",
        "cmnist_gsc",
        "own",
    } | set(FEDDIVERSE)


def test_the_users_options_override_the_preset(compose_preset: Any) -> None:
    config = compose_preset("partition=dirichlet", "label_noise.a=5")
    assert config["partition"]["_target_"].endswith("Dirichlet")
    assert set(config["partition"]) == {"_target_", "alpha", "min_samples"}
    assert config["label_noise"]["a"] == 5


@pytest.mark.parametrize(
    ("overrides", "choice"),
    [
        ((), "noniid30_noise15"),
        (("partition=dominant_class", "label_noise.a=15"), "noniid30_noise15"),
        (("partition=dirichlet",), None),
        (("partition.fraction=0.5",), None),
        (("label_noise=none",), None),
        (("heterogeneity=noniid30", "label_noise=beta"), None),
        (("heterogeneity=noniid30", "feature_noise=gaussian"), None),
        (("dataset=synthetic",), "natural"),
        (("dataset=synthetic", "partition=iid"), None),
        (("dataset=folder",), "iid"),
        (("dataset=folder", "dataset.client=site"), "natural"),
        (("dataset=folder", "dataset.client=site", "label_noise=beta"), None),
        (("dataset=folder", "heterogeneity=noniid30"), "noniid30"),
    ],
)
def test_a_run_has_the_presets_name_only_if_it_is_unchanged(overrides: tuple[str, ...], choice: str | None) -> None:
    composition = compose_overrides(*overrides)
    assert composition.choices.get("heterogeneity") == choice
    assert "heterogeneity" not in composition.config, (
        "the preset's name changes no result: two ways to one run have one hash"
    )


def test_presets_have_no_options() -> None:
    with pytest.raises(OptionError, match=r"a preset has no options, type partition.fraction=0.4"):
        compose_overrides("heterogeneity.partition.fraction=0.4")


def test_synthetic_data_have_their_own_clients(compose_preset: Any) -> None:
    config = compose_preset("dataset=synthetic", "clients=7")
    assert config["partition"] == NATURAL
    assert config["label_noise"] == CLEAN
    assert config["dataset"]["clients"] == 7


def test_synthetic_data_with_a_heterogeneity_named_by_the_user(compose_preset: Any) -> None:
    config = compose_preset("dataset=synthetic", "heterogeneity=noise15")
    assert config["partition"] == IID
    assert config["label_noise"] == NOISY


@pytest.mark.parametrize("client", ["null", "site"])
def test_user_data_use_the_natural_partition_and_name(client: str) -> None:
    """The composed config, and so the hash, equals that of the preset's choices typed one by one."""
    data = ("dataset=folder", f"dataset.client={client}")
    choice, clients = ("iid", 50) if client == "null" else ("natural", None)
    default_options, explicit_options = (
        compose_overrides(*data),
        compose_overrides(*data, f"heterogeneity={choice}", f"clients={'null' if clients is None else 50}"),
    )
    assert (default_options.config, default_options.choices) == (explicit_options.config, explicit_options.choices)
    assert default_options.config["partition"] == (IID if client == "null" else NATURAL)
    assert (default_options.config["label_noise"], default_options.config["clients"]) == (CLEAN, clients)
    assert default_options.choices["partition"] == choice


@pytest.mark.parametrize(
    ("overrides", "partition", "label_noise", "clients"),
    [
        (("heterogeneity=noniid30_noise15",), SKEWED, NOISY, 50),
        (("partition=dominant_class",), SKEWED, CLEAN, 50),
        (("label_noise=beta",), IID, NOISY, 50),
        (("clients=7",), IID, CLEAN, 7),
        (("dataset.client=site", "clients=7"), NATURAL, CLEAN, 7),
        (("experiment=flash",), IID, CLEAN, 50),
        (("dataset.client=site", "experiment=regret"), NATURAL, CLEAN, 20),
    ],
)
def test_explicit_options_override_the_defaults_of_user_data(
    overrides: tuple[str, ...], partition: dict[str, Any], label_noise: dict[str, Any], clients: int | None
) -> None:
    config = compose_overrides("dataset=folder", *overrides).config
    assert (config["partition"], config["label_noise"], config["clients"]) == (partition, label_noise, clients)


def test_an_experiments_options_override_the_defaults_of_user_data() -> None:
    composition = compose_overrides("dataset=folder", "experiment=drift")
    assert composition.choices["partition"] == "label_shards"
    assert composition.config["clients"] == 100


def test_a_number_of_clients_that_is_not_used_is_rejected() -> None:
    for overrides in (("partition=iid",), ("heterogeneity=noniid30",), ("experiment=drift",)):
        composition = compose_overrides("dataset=folder", "dataset.client=site", *overrides)
        with pytest.raises(
            IncompatibleConfig, match=r"^dataset.client=site has no effect with partition=\w+, which makes"
        ):
            check.check_client_column(composition, components.make_component(composition, "partition"))
    check.check_client_column(
        composition := compose_overrides("dataset=folder"), components.make_component(composition, "partition")
    )
