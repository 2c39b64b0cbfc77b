"""Colours and clients by hand, on made-up digits and, where they are, on the real ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fake_hub import COMMIT, serve_folder
from fedcohort.data import skew
from fedcohort.dataset.base import Raw
from fedcohort.dataset.cmnist import PIXEL_MEAN, PIXEL_SD, Cmnist
from fedcohort.errors import DataError, OptionError
from optional_values import not_none
from round_harness import run_without_files
from run_harness import run_training

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "mnist"
HUB = "ylecun/mnist"


def make_dataset(path: Any = None, clients: int = 24, ci: float = 0.17, ai: float = 0.17, share: float = 0.9) -> Cmnist:
    return Cmnist(None if path is None else str(path), HUB, None, clients, ci, ai, share)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Image i has the value i % 251 + 1 in every pixel and the label i % 10."""
    path = tmp_path_factory.mktemp("digits")
    for part, n in (("train", 1200), ("test", 110)):
        rows = [np.full(784, i % 251 + 1, np.uint8) for i in range(n)]
        table = pa.table({"image": rows, "label": [i % 10 for i in range(n)]})
        pa.parquet.write_table(table, path / f"{part}.parquet")
    return path


def counts_of(raw: Raw) -> np.ndarray:
    owner = not_none(raw.train_owner)
    counts = np.zeros((owner.max() + 1, 2, 2), np.int64)
    np.add.at(counts, (owner, raw.train_y, not_none(raw.train_attribute)), 1)
    return counts


def test_a_digit_is_in_the_channel_of_its_colour(folder: Path) -> None:
    raw = make_dataset(folder).load(0)
    black = (0 - PIXEL_MEAN) / PIXEL_SD
    for x, a in ((raw.train_x, raw.train_attribute), (raw.test_x, raw.test_attribute)):
        assert a is not None
        rows = np.arange(len(x))
        np.testing.assert_allclose(x[rows, 1 - a], black, atol=1e-6)
        value = x[rows, a, 0, 0] * PIXEL_SD + PIXEL_MEAN
        assert (value > 1 / 256).all()
    # With the label of row i being i % 10, the value of an image tells which class it must have: i % 251 + 1.
    i = (
        np.rint(
            (raw.test_x[np.arange(len(raw.test_y)), raw.test_attribute, 0, 0] * PIXEL_SD + PIXEL_MEAN) * 255
        ).astype(int)
        - 1
    )
    np.testing.assert_array_equal(raw.test_y, i % 10 >= 5)


def test_the_dataset_states_the_scale_that_converted_its_pixels(folder: Path) -> None:
    raw, image = make_dataset(folder).load(0), np.zeros((1, 2, 28, 28), np.uint8)
    colour = int(not_none(raw.test_attribute)[0])
    value = np.rint((raw.test_x[0].max() * PIXEL_SD + PIXEL_MEAN) * 255).astype(np.uint8)
    image[0, colour] = value
    np.testing.assert_array_equal(not_none(raw.converted_scale).convert(image)[0], raw.test_x[0])


def test_the_revision_of_hub_data_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_folder(monkeypatch, folder)
    assert make_dataset().load(0).revision == f"{HUB}@{COMMIT}"
    assert make_dataset(folder).load(0).revision == ""


def test_digit_labels_may_be_texts(folder: Path, tmp_path: Path) -> None:
    for part in ("train", "test"):
        table = pa.parquet.read_table(folder / f"{part}.parquet")
        text_table = pa.table({"image": table["image"], "label": [str(c) for c in table["label"].to_pylist()]})
        pa.parquet.write_table(text_table, tmp_path / f"{part}.parquet")
    np.testing.assert_array_equal(make_dataset(tmp_path).load(0).train_y, make_dataset(folder).load(0).train_y)


def test_pixels_from_0_to_1_give_the_same_images_as_bytes(folder: Path, tmp_path: Path) -> None:
    """They were divided by 255 a second time, so that all images were as good as black."""
    for part in ("train", "test"):
        table = pa.parquet.read_table(folder / f"{part}.parquet").to_pydict()
        table["image"] = [np.array(image, np.float32) / 255 for image in table["image"]]
        pa.parquet.write_table(pa.table(table), tmp_path / f"{part}.parquet")
    undivided, divided = make_dataset(folder).load(0), make_dataset(tmp_path).load(0)
    np.testing.assert_array_equal(divided.train_x, undivided.train_x)
    np.testing.assert_array_equal(divided.test_x, undivided.test_x)


def test_each_client_has_mainly_one_kind_of_skew() -> None:
    """share .9: 1 - H(.9, .1) / ln 2 = .531004, for the one imbalance or correlation that a client has."""
    counts = make_dataset().count_samples_by_group(np.array([30_000, 30_000]), np.random.default_rng(0))
    assert np.ptp(counts.sum((1, 2))) <= 3
    metrics = skew.skew_triplets(counts)
    main = metrics.argmax(1)
    assert np.bincount(main).tolist() == [4, 4, 16]
    np.testing.assert_allclose(metrics[np.arange(24), main], 0.531004, atol=2e-3)
    np.testing.assert_allclose(np.sort(metrics, axis=1)[:, :2], 0, atol=1e-5)


def test_pooled_clients_have_only_spurious_correlation() -> None:
    """16 of 24 clients with .9 agreement, the others .5: .7667 of all agree, 1 - H(.7667, .2333) / ln 2 = .2160."""
    metrics = skew.skew_metrics(
        make_dataset().count_samples_by_group(np.array([30_000, 30_000]), np.random.default_rng(0))
    )
    assert metrics["global_ci"] == pytest.approx(0, abs=1e-6)
    assert metrics["global_ai"] == pytest.approx(0, abs=1e-6)
    p = 4 / 24 * 0.5 * 2 + 16 / 24 * 0.9
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert metrics["global_sc"] == pytest.approx(1 - entropy / np.log(2), abs=1e-3)
    assert metrics["client_sc"] == pytest.approx(16 / 24 * 0.531, abs=2e-3)


def test_the_test_set_is_balanced_over_class_and_colour(folder: Path) -> None:
    raw = make_dataset(folder).load(0)
    assert raw.test_attribute is not None
    assert np.bincount(2 * raw.test_y + raw.test_attribute).tolist() == [27] * 4
    assert raw.test_owner is None
    assert (raw.n_classes, raw.n_attributes) == (2, 2)


def test_no_image_is_used_twice_and_unused_images_are_counted(folder: Path) -> None:
    raw = make_dataset(folder, clients=7).load(0)
    values = np.rint((raw.train_x.max((1, 2, 3)) * PIXEL_SD + PIXEL_MEAN) * 255).astype(int) - 1
    assert np.bincount(values).max() <= 5, "1200 images of 251 values"
    n_unused = 1200 - len(raw.train_y)
    assert f"{n_unused} training and 2 test images left out" in raw.inputs


def test_the_seed_determines_the_coloured_data(folder: Path) -> None:
    first, repeat, other_data = (make_dataset(folder).load(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.train_attribute, repeat.train_attribute)
    np.testing.assert_array_equal(first.train_owner, repeat.train_owner)
    assert counts_of(first).tolist() != counts_of(other_data).tolist()


def test_shares_of_one_half_and_one_give_the_expected_counts(folder: Path) -> None:
    counts = counts_of(make_dataset(folder, clients=2, ci=0, ai=0, share=1).load(0))
    assert (counts[:, [0, 1], [1, 0]] == 0).all()
    counts = counts_of(make_dataset(folder, clients=2, ci=0.5, ai=0.5, share=0.5).load(0))
    assert np.ptp(counts) == 0


def test_infeasible_cmnist_options_are_rejected(folder: Path) -> None:
    with pytest.raises(OptionError, match=r"ai must be at most 1 - ci = 0.4, got 0.5"):
        make_dataset(ci=0.6, ai=0.5)
    with pytest.raises(OptionError, match="clients must be an integer in"):
        make_dataset(clients=None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"too few images of a class for clients=5000"):
        make_dataset(folder, clients=5000).load(0)


def test_a_run_on_cmnist_reports_the_worst_group_accuracy(folder: Path, tmp_path: Path) -> None:
    """Its worst group is at most as accurate as the whole, whose groups are of equal size."""
    overrides = ("dataset=cmnist", f"dataset.path={folder}", "split.limit=480", "client.epochs=1", "rounds=2")
    diverse = (*overrides, "selector=feddiverse", "selector.epochs=1")
    run = run_training(tmp_path / "a", *diverse)
    for report in run.reports:
        assert 0 <= report.metrics["test/acc_worst_group"] <= report.metrics["test/acc"]
    six = {f"{level}_{name}" for level in ("global", "client") for name in skew.SKEW_METRIC_NAMES}
    assert run.info.skew.keys() == six
    assert {name[5:]: value for name, value in run.reports[0].metrics.items() if name[:5] == "skew/"} == run.info.skew
    assert run.info.skew["client_sc"] > 0.2
    assert run_without_files(*diverse, "selector.source=known_dht", "eval.every=2").last.step == 2
    assert run_without_files(*diverse, "selector.source=known_matrix").last.step == 2


@pytest.fixture(scope="module")
def real() -> Raw:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/mnist beside the repository: the real data are shared, not committed")
    return make_dataset(SHARED).load(0)


def test_coloured_real_mnist_has_the_documented_group_sizes(real: Raw) -> None:
    """Digits up to 4: 30,596 for training and 5,139 for the test; 4,861 from 5 on, so 2,430 a group."""
    assert np.bincount(2 * real.test_y + real.test_attribute).tolist() == [2430] * 4
    assert len(real.train_y) > 58_000
    assert real.train_x.dtype == np.float32
    rows = np.arange(0, len(real.train_y), 4)
    pixels = real.train_x[rows, not_none(real.train_attribute)[rows]]
    assert pixels.mean(dtype=np.float64) == pytest.approx(0, abs=5e-3)
    assert pixels.std(dtype=np.float64) == pytest.approx(1, abs=5e-3)
    assert skew.skew_metrics(counts_of(real))["global_sc"] == pytest.approx(0.216, abs=2e-3)
