"""FEMNIST's layouts: the hub's, and LEAF's as it is prepared."""

from pathlib import Path

import numpy as np
import pytest

from fedcohort.dataset.base import Raw
from fedcohort.dataset.femnist import Femnist
from fedcohort.errors import DataError
from image_tables import encode_image, random_images, write_image_table
from optional_values import not_none
from run_harness import compose_overrides, run_training

WRITERS = [f"f{k:04}_{k % 7:02}" for k in range(8) for _ in range(10 + k)]
PIXELS = random_images(len(WRITERS), (1, 28, 28))
LABELS = [i % 62 for i in range(len(WRITERS))]


def hubs(folder: Path) -> None:
    images = [encode_image(image) for image in PIXELS]
    write_image_table(folder, "train", image=images, writer_id=WRITERS, hsf_id=[0] * len(WRITERS), character=LABELS)


def make_dataset(folder: Path, test: str = "sample", users: float = 1.0) -> Raw:
    return Femnist(str(folder), "hub", None, test, users, 0, "uint8").load(0)


def test_each_row_keeps_its_image_label_and_writer(tmp_path: Path) -> None:
    hubs(tmp_path)
    for test in ("sample", "user"):
        raw = make_dataset(tmp_path, test)
        x = np.concatenate([raw.train_x, raw.test_x])
        y = np.concatenate([raw.train_y, raw.test_y])
        assert len(x) == len(WRITERS)
        row_of_image = {image.tobytes(): row for row, image in enumerate(PIXELS)}
        rows = [row_of_image[image.tobytes()] for image in x]
        assert sorted(rows) == list(range(len(WRITERS)))
        assert y.tolist() == [LABELS[row] for row in rows]
        ids = sorted({WRITERS[row] for row in rows[: len(raw.train_x)]})
        assert [ids[k] for k in not_none(raw.train_owner)] == [WRITERS[row] for row in rows[: len(raw.train_x)]]
        assert raw.pooled_test is (raw.test_owner is None) is (test == "user")


def test_leafs_parts_are_pooled_unless_test_is_given(tmp_path: Path) -> None:
    """LEAF's own split has the last image of each writer in the test part."""
    last = [i + 1 == len(WRITERS) or WRITERS[i + 1] != writer for i, writer in enumerate(WRITERS)]
    for part, is_test in (("train", False), ("test", True)):
        rows = [i for i in range(len(WRITERS)) if last[i] is is_test]
        lists = [(PIXELS[i].ravel() / 255).astype(np.float32).tolist() for i in rows]
        write_image_table(tmp_path, part, client=[WRITERS[i] for i in rows], x=lists, y=[LABELS[i] for i in rows])
    raw = make_dataset(tmp_path, "given")
    np.testing.assert_array_equal(raw.test_x, PIXELS[last])
    np.testing.assert_array_equal(not_none(raw.test_owner), np.arange(8))
    pool = make_dataset(tmp_path)
    assert len(pool.train_x) + len(pool.test_x) == len(WRITERS)
    assert len(pool.test_x) == sum(n - int(0.9 * n) for n in range(10, 18))


def test_the_users_option_keeps_a_share_of_the_samples(tmp_path: Path) -> None:
    hubs(tmp_path)
    raw = make_dataset(tmp_path, users=0.4)
    assert len(raw.train_x) + len(raw.test_x) == int(0.4 * len(WRITERS))
    assert len(np.unique(not_none(raw.train_owner))) < 8
    assert raw.inputs.startswith("1 x 28 x 28 pixels, kept as bytes; ")
    n = len(WRITERS)
    assert f"; {n} images, {805_263 - n:,} fewer than the original's 805,263; " in raw.inputs
    assert raw.inputs.endswith("; 8 people, 3,542 fewer than the original's 3,550")


def test_test_given_requires_a_test_file(tmp_path: Path) -> None:
    hubs(tmp_path)
    with pytest.raises(DataError, match=r"needs test.parquet or test.csv; it holds train.parquet"):
        make_dataset(tmp_path, "given")


def test_a_run_on_femnist_has_a_client_per_writer(tmp_path: Path) -> None:
    hubs(tmp_path)
    overrides = ("dataset=femnist", f"dataset.path={tmp_path}", "clients=null", "cohort=3", "rounds=1")
    assert compose_overrides(*overrides).choices["heterogeneity"] == "natural"
    run = run_training(tmp_path / "sample", *overrides)
    assert len(run.info.n_train) == 8
    assert "clients/acc_mean" in run.last.metrics
    run = run_training(tmp_path / "user", *overrides, "dataset.test=user")
    assert len(run.info.n_train) == 7
    assert "clients/acc_mean" not in run.last.metrics
