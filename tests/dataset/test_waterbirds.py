"""WaterBirds on small made files: its places, and the square that is cut."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.checksum import compute_checksum
from fedcohort.dataset.waterbirds import Waterbirds
from fedcohort.errors import DataError, OptionError
from federation_harness import make_federation
from image_tables import encode_image, random_images, write_image_table
from optional_values import not_none
from run_harness import run_training


def test_images_are_resized_a_seventh_larger_and_centre_cropped(tmp_path: Path) -> None:
    """size 14: 16 x 16, of which a frame one pixel wide goes. An image of 16 x 16 is not resized."""
    pixels = random_images(6, (3, 16, 16))
    for part in ("train", "test"):
        write_image_table(
            tmp_path, part, image=[encode_image(image) for image in pixels], label=[0, 1] * 3, place=[0, 0, 1] * 2
        )
    raw = Waterbirds(str(tmp_path), "hub", None, "uint8", 14).load(0)
    np.testing.assert_array_equal(raw.train_x, pixels[:, :, 1:-1, 1:-1])
    assert not_none(raw.test_attribute).tolist() == [0, 0, 1, 0, 0, 1]
    assert raw.class_names == ("landbird", "waterbird")
    grey = [encode_image(image[:1]) for image in pixels]
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=grey, y=[0, 1] * 3, place=["land", "land", "water"] * 2)
    raw = Waterbirds(str(tmp_path), "hub", None, "uint8", 14).load(0)
    np.testing.assert_array_equal(raw.train_x, np.repeat(pixels[:, :1, 1:-1, 1:-1], 3, axis=1))
    assert not_none(raw.test_attribute).tolist() == [0, 0, 1, 0, 0, 1]


def test_a_run_on_waterbirds_reports_groups(tmp_path: Path) -> None:
    images = [encode_image(image) for image in random_images(80, (3, 20, 20))]
    rows = np.arange(80)
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=images, label=rows % 2, place=rows // 2 % 2)
    overrides = (
        "dataset=waterbirds",
        f"dataset.path={tmp_path}",
        "dataset.size=16",
        "clients=5",
        "cohort=2",
        "rounds=1",
    )
    run = run_training(tmp_path / "run", *overrides, "heterogeneity=iid")
    assert 0 <= run.last.metrics["test/acc_worst_group"] <= run.last.metrics["test/acc"]
    assert "global_sc" in run.info.skew


def test_rows_of_the_validation_file_belong_to_the_server(tmp_path: Path) -> None:
    """All training images are the clients' then; without it the server cuts a twentieth of the 80 of them: 4."""
    pixels = random_images(100, (3, 16, 16))
    images = [encode_image(image) for image in pixels]
    for part, rows in (("train", slice(0, 80)), ("test", slice(80, 90))):
        n = len(images[rows])
        write_image_table(tmp_path, part, image=images[rows], label=[0, 1] * (n // 2), place=[0, 0, 1, 1, 0] * (n // 5))
    without_validation = Waterbirds(str(tmp_path), "hub", None, "uint8", 14).load(0)
    assert without_validation.valid is None
    write_image_table(tmp_path, "valid", image=images[90:], label=[1, 0] * 5, place=[0, 1] * 5)
    raw = Waterbirds(str(tmp_path), "hub", None, "uint8", 14).load(0)
    assert raw.valid is not None
    np.testing.assert_array_equal(raw.valid[0], pixels[90:, :, 1:-1, 1:-1])
    assert raw.valid[1].tolist() == [1, 0] * 5
    assert raw.inputs.endswith("; 10 validation images are the server's")
    assert compute_checksum(raw) != compute_checksum(without_validation)
    counts = [
        (len(make_federation(item, clients=5).server_val.y), int(make_federation(item, clients=5).class_counts.sum()))
        for item in (raw, without_validation)
    ]
    assert counts == [(10, 80), (4, 76)]
    as_float = Waterbirds(str(tmp_path), "hub", None, "float32", 14).load(0)
    assert not_none(as_float.valid)[0].dtype == np.float32
    np.testing.assert_allclose(not_none(as_float.valid)[0], not_none(raw.scale).convert(raw.valid[0]), atol=1e-6)
    write_image_table(tmp_path, "valid", image=images[:1], label=[2], place=[0])
    with pytest.raises(DataError, match="'label', row 0 has label 2; labels must be whole, at least 0 and at most 1"):
        Waterbirds(str(tmp_path), "hub", None, "uint8", 14).load(0)


def test_invalid_waterbirds_options_and_places_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"size must be an integer in \[8, 1024\], got 4"):
        Waterbirds(None, "hub", None, "auto", 4)
    write_image_table(
        tmp_path, "train", image=[encode_image(random_images(1, (3, 9, 9))[0])] * 2, label=[0, 1], place=["land", "sky"]
    )
    write_image_table(
        tmp_path, "test", image=[encode_image(random_images(1, (3, 9, 9))[0])] * 2, label=[0, 1], place=["land", "sea"]
    )
    with pytest.raises(DataError, match="'place', row 1 has label 'sky'; labels are land, water, or their numbers"):
        Waterbirds(str(tmp_path), "hub", None, "auto", 16).load(0)
