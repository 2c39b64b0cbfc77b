"""CIFAR-10 by hand and, where they are, on the real images."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.cifar10 import CLASSES, TABLE_SPEC, Cifar10
from fedcohort.dataset.files import read_part_table
from fedcohort.dataset.image_dataset import read_images
from fedcohort.dataset.labels import read_class_column
from image_tables import DATA_FOLDER, encode_image, random_images, write_image_table
from run_harness import run_training, same_bits

PIXELS = random_images(40, (3, 32, 32))


def test_pixel_lists_in_both_orders_and_encoded_images_give_equal_inputs(tmp_path: Path) -> None:
    kinds = {
        "img": [encode_image(image) for image in PIXELS],
        "image": PIXELS.reshape(40, -1).tolist(),
    }
    results = []
    for name, images in [*kinds.items(), ("image", PIXELS.transpose(0, 2, 3, 1).tolist())]:
        for part in ("train", "test"):
            write_image_table(tmp_path, part, **{name: images}, label=[i % 10 for i in range(40)])
        results.append(Cifar10(str(tmp_path), "hub", None, "auto").load(0))
    mean, sd = (np.array(values)[:, None, None] for values in (TABLE_SPEC.pixel_scale.mean, TABLE_SPEC.pixel_scale.sd))
    np.testing.assert_allclose(results[0].train_x, (PIXELS / 255 - mean) / sd, atol=1e-6)
    for other_data in results[1:]:
        np.testing.assert_array_equal(other_data.train_x, results[0].train_x)


def test_a_run_on_uint8_pixels_equals_one_on_float32_bit_for_bit(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_image_table(
            tmp_path, part, img=[encode_image(image) for image in PIXELS], label=[i % 10 for i in range(40)]
        )
    overrides = (
        "dataset=cifar10",
        f"dataset.path={tmp_path}",
        "model=cnn",
        "clients=4",
        "cohort=2",
        "heterogeneity=iid",
    )
    short_run = (*overrides, "rounds=1", "client.lr=0.01", "client.epochs=1", "model.dense=16")
    runs = [run_training(tmp_path / kind, *short_run, f"dataset.pixels={kind}") for kind in ("float32", "uint8")]
    assert same_bits(*runs)
    assert runs[1].info.tags["inputs"].startswith("3 x 32 x 32 pixels, kept as bytes; 40 training images")
    assert len({run.info.tags["data"] for run in runs}) == 2
    assert runs[0].info.tags["engine"] == runs[1].info.tags["engine"]


def test_every_engine_trains_on_uint8_pixels(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_image_table(
            tmp_path, part, img=[encode_image(image) for image in PIXELS] * 2, label=[i % 10 for i in range(80)]
        )
    overrides = ("dataset=cifar10", f"dataset.path={tmp_path}", "clients=6", "cohort=3", "client.lr=0.01")
    small = ("rounds=1", "heterogeneity=iid")
    for engine in (
        ("engine=vectorised", "model=mlp", "model.hidden=[8]"),
        (),
        ("agg=feddf", "agg.steps=3", "proxy=noise", "proxy.n=8"),
    ):
        runs = [
            run_training(tmp_path / kind, *overrides, *small, *engine, f"dataset.pixels={kind}")
            for kind in ("float32", "uint8")
        ]
        if "proxy=noise" not in engine:
            np.testing.assert_allclose(runs[0].weights(), runs[1].weights(), atol=1e-5)
        assert runs[1].last.step == 1


def test_the_real_cifar10_files_have_the_documented_content() -> None:
    """Every tenth test image: decoding all of them takes a quarter of a minute."""
    if not (DATA_FOLDER / "cifar10").is_dir():
        pytest.skip("no ../shared/data/cifar10 beside the repository: the real data are shared, not committed")
    frame = read_part_table(str(DATA_FOLDER / "cifar10"), "test")
    labels = read_class_column(frame, "label", CLASSES)
    assert np.bincount(labels).tolist() == [1000] * 7 + [999, 967, 1000], "the file's description says so"
    pixels = read_images([frame], TABLE_SPEC.image_columns, TABLE_SPEC.image_format, np.arange(0, len(labels), 10))
    assert pixels.shape == (997, 3, 32, 32)
    x = TABLE_SPEC.pixel_scale.convert(pixels)
    np.testing.assert_allclose(x.mean((0, 2, 3)), 0, atol=0.05)
    np.testing.assert_allclose(x.std((0, 2, 3)), 1, atol=0.05)
