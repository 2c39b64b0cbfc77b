"""FedDiverse's federations: clients, kinds and the six metrics, on the counts of the original data and in small runs.

The paper prints no number of the six metrics (its Fig. 3 is a picture). Its statements are tested: the clients (Sec.
V-B), the skew of all data together (Sec. V-A), and WaterBirds' 3 clients of mainly class imbalance and 2 of attribute
imbalance, with 10^2 to 10^3 samples each (Table II). The other numbers follow from the rule, by hand.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.data import skew
from fedcohort.dataset.breeds import BREEDS
from fedcohort.partition.attribute import Attribute
from fedcohort.partition.base import SamplePool
from fedcohort.startup import components
from feddiverse_tables import FEDDIVERSE, write_spawrious, write_waterbirds
from run_harness import compose_overrides, run_training

CLIENTS = {"waterbirds_dist": 30, "spawrious_gai": 25, "spawrious4": 25, "spawrious_gci100": 100}  # 24 elsewhere
GLOBAL = {"spawrious_gsc": "sc", "spawrious_gci": "ci", "spawrious_gai": "ai", "spawrious4": "sc"}
GLOBAL |= {"spawrious_gci100": "ci"}
DOGS = np.full((2, 2), 6336 - 633)  # a tenth of the smallest pair is the test part
BIRDS = np.array([[3498, 184], [56, 1057]])


def dataset(choice: str) -> str:
    return "waterbirds" if choice == "waterbirds_dist" else "spawrious"


def compose_preset(choice: str, *overrides: str) -> Any:
    return compose_overrides(f"dataset={dataset(choice)}", f"heterogeneity={choice}", *overrides)


@cache
def federation(choice: str) -> np.ndarray:
    """The samples that each client would have of the original data, [K, C, A], if the server kept none of them."""
    composition = compose_preset(choice)
    partition = components.make_component(composition, "partition")
    assert isinstance(partition, Attribute)
    breeds = len(composition.config["dataset"].get("breeds", ()))
    pools = BIRDS if not breeds else np.full((breeds, 2), DOGS[0, 0])
    pair = np.repeat(np.arange(pools.size), pools.ravel())
    sample_pool = SamplePool(pair // 2, len(pools), None, pair % 2, 2)
    parts = partition.split(sample_pool, composition.config["clients"], np.random.default_rng(0))
    return np.stack([np.bincount(pair[part], minlength=pools.size).reshape(pools.shape) for part in parts])


@pytest.mark.parametrize("choice", FEDDIVERSE)
def test_a_preset_has_the_papers_clients_of_each_kind(choice: str) -> None:
    counts = federation(choice)
    assert len(counts) == sum(FEDDIVERSE[choice]) == CLIENTS.get(choice, 24)
    assert tuple(np.bincount(skew.skew_triplets(counts).argmax(1), minlength=3)) == FEDDIVERSE[choice]
    sizes = counts.sum((1, 2))
    assert sizes.max() - sizes.min() <= 1
    assert 100 < sizes.min() <= sizes.max() < 1200


@pytest.mark.parametrize("choice", GLOBAL)
def test_the_pooled_data_have_only_one_kind_of_skew(choice: str) -> None:
    metrics = skew.skew_metrics(federation(choice))
    for name in skew.SKEW_METRIC_NAMES:
        if name == GLOBAL[choice]:
            assert metrics[f"global_{name}"] > 0.1
        else:
            assert metrics[f"global_{name}"] < 1e-3


def entropy(*counts: float) -> float:
    p = np.array(counts) / sum(counts)
    return float(-(p * np.log(p)).sum())


def test_the_metrics_by_hand() -> None:
    """Each client's own metric is 1 - H(.9, .1) / ln 2 = .531. The pooled one has m of K clients with the same skew.

    p = 1/2 + (.9 - 1/2) m / K of the samples are of the class, the attribute or the pairing. spawrious4 has four
    classes: a client's SC is 2 (ln 2 - H(.9, .1)) / (ln 4 + ln 2) = .354. Its CI is 1 - H(.9, 1/30, 1/30, 1/30) / ln 4.
    """
    ci = 1 - entropy(0.9, 0.1) / np.log(2)
    for choice, m in (("spawrious_gsc", 16), ("spawrious_gci", 16), ("spawrious_gai", 17), ("spawrious_gci100", 68)):
        K, metrics = CLIENTS.get(choice, 24), skew.skew_metrics(federation(choice))
        p = 0.5 + 0.4 * m / K
        assert metrics[f"global_{GLOBAL[choice]}"] == pytest.approx(1 - entropy(p, 1 - p) / np.log(2), abs=6e-3)
        for name, kind in zip(skew.SKEW_METRIC_NAMES, FEDDIVERSE[choice], strict=True):
            assert metrics[f"client_{name}"] == pytest.approx(kind / K * ci, abs=6e-3)
    four = skew.skew_metrics(federation("spawrious4"))
    assert four["client_sc"] == pytest.approx(17 / 25 * ci / 1.5, abs=6e-3)
    assert four["client_ci"] == pytest.approx(4 / 25 * (1 - entropy(27, 1, 1, 1) / np.log(4)), abs=6e-3)
    assert four["client_ai"] == pytest.approx(4 / 25 * ci, abs=6e-3)


def test_waterbirds_is_partitioned_completely_with_its_correlation() -> None:
    """4,795 images: 3,682 land birds and 1,241 on water. The 25 others differ from the data by what 5 clients took."""
    counts = federation("waterbirds_dist")
    np.testing.assert_array_equal(counts.sum(0), BIRDS)
    metrics = skew.skew_metrics(counts)
    assert metrics["global_ci"] == pytest.approx(1 - entropy(3682, 1113) / np.log(2))
    assert metrics["global_ai"] == pytest.approx(1 - entropy(3554, 1241) / np.log(2))
    information = entropy(3682, 1113) + entropy(3554, 1241) - entropy(3498, 184, 56, 1057)
    sc = 2 * information / (entropy(3682, 1113) + entropy(3554, 1241))
    assert metrics["global_sc"] == pytest.approx(sc) == pytest.approx(0.670, abs=1e-3)
    full_tables = [client_table for client_table in counts if client_table.sum(0).all() and client_table.sum(1).all()]
    assert len(full_tables) == 25
    assert np.abs([skew.skew_triplet(client_table)[2] - sc for client_table in full_tables]).max() < 0.06


def test_the_docs_have_the_clients_and_the_pooled_skew_of_the_presets() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text()
    kinds = {"ci": "class imbalance", "ai": "attribute imbalance", "sc": "spurious correlation"}
    for choice, kind in GLOBAL.items():
        clients = ", ".join(map(str, FEDDIVERSE[choice]))
        skew_of_pool = skew.skew_metrics(federation(choice))[f"global_{kind}"]
        row = rf"^\| `{choice}`[^|]* \| {len(federation(choice))} \| {clients} \| {kinds[kind]}, {skew_of_pool:.2f} \|$"
        assert re.search(row, page, re.MULTILINE), row
    birds = skew.skew_metrics(federation("waterbirds_dist"))
    numbers = ", ".join(f"{birds[f'global_{kind}']:.2f}" for kind in kinds)
    assert f"| `waterbirds_dist` | 30 | 3, 2, 25 | that of WaterBirds: {numbers} |" in page


def test_a_user_can_change_the_presets_options() -> None:
    gsc = compose_preset("spawrious_gsc")
    assert gsc.config["dataset"]["breeds"] == ["labrador", "dachshund"]
    assert gsc.config["dataset"]["places"] == ["beach", "snow"]
    assert gsc.choices["heterogeneity"] == "spawrious_gsc"
    assert compose_preset("spawrious4").config["dataset"]["breeds"] == list(BREEDS)
    for override in ("clients=30", "partition.share=0.8", "dataset.places=[snow,beach]", "label_noise=beta"):
        changed = compose_preset("spawrious_gsc", override)
        assert "heterogeneity" not in changed.choices, override
    assert compose_preset("spawrious_gsc", "clients=30").config["clients"] == 30
    assert compose_preset("spawrious_gsc", "clients=24").config == gsc.config
    plain = compose_overrides("dataset=spawrious", "heterogeneity=iid")
    assert (plain.config["clients"], plain.config["dataset"]["breeds"]) == (50, list(BREEDS))
    assert compose_preset("spawrious_gsc", "partition=iid").config["partition"].keys() == {"_target_"}


@pytest.mark.parametrize("choice", ["spawrious_gsc", "waterbirds_dist"])
def test_the_partition_does_not_depend_on_the_selector(choice: str, tmp_path: Path) -> None:
    path = write_waterbirds(tmp_path) if choice == "waterbirds_dist" else write_spawrious(tmp_path, 100)
    overrides = (
        f"dataset={dataset(choice)}",
        f"heterogeneity={choice}",
        f"dataset.path={path}",
        "dataset.size=8",
        "rounds=1",
    )
    clients = f"clients={CLIENTS.get(choice, 24)}"
    runs = [
        run_training(tmp_path / name, *overrides, clients, "client.epochs=1", f"selector={name}")
        for name in ("random", "round_robin")
    ]
    first, second = (run.info for run in runs)
    np.testing.assert_array_equal(first.class_counts, second.class_counts)
    assert first.skew == second.skew
    assert first.choices["heterogeneity"] == choice
    assert first.tags["data"] == second.tags["data"]
    if choice == "spawrious_gsc":
        assert first.skew["global_sc"] > 0.1 > 0.05 > max(first.skew["global_ci"], first.skew["global_ai"])
        assert "training samples are not assigned to any client" in first.tags["inputs"]
    else:
        assert first.class_counts.sum() == 174 + 9 + 2 + 52
        assert "40 validation images are the server's" in first.tags["inputs"]
