"""Each kind of wrong data is rejected with a message that says where, or accepted with a notice.

dataset=folder stands for a user's data. Messages about images of a known layout are tested in
tests/laws/test_image_dataset_laws.py, and each kind of cell in test_folder_rows.py and test_folder_labels.py.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.dataset.base import Raw, check_raw_data
from fedcohort.dataset.celeba import Celeba
from fedcohort.dataset.spawrious import Spawrious
from fedcohort.dataset.waterbirds import Waterbirds
from fedcohort.errors import DataError, OptionError
from fedcohort.host import memory
from fedcohort.partition.iid import Iid
from fedcohort.partition.natural import Natural
from federation_harness import make_federation
from folder_tables import make_folder_dataset, set_value, write_both_parts
from folder_tables import write_part as write_part
from image_tables import encode_image, random_images, write_image_table

N = 40
SITES = [k % 4 for k in range(N)]
IMAGES = [encode_image(image) for image in random_images(N, (1, 8, 8))]
BINARY_LABELS = [k % 2 for k in range(N)]


def load(path: Path, columns: Mapping[str, Any], **options: Any) -> Raw:
    write_both_parts(path, N, **columns)
    return make_folder_dataset(path, **options).load(0)


@pytest.mark.parametrize(
    ("columns", "options", "expected_text"),
    [
        ({}, {"client": "site"}, r"train.parquet has no column 'site'; it has x, label"),
        ({}, {"label": "y"}, r"train.parquet has no column 'y'"),
        ({"label": set_value(BINARY_LABELS, 3, 0.5)}, {}, r"train.parquet: column 'label', row 3 has label 0.5"),
        (
            {"x": set_value(range(N), 3, float("nan"))},
            {},
            r"train.parquet: column 'x', row 3 has a value that is NaN or inf",
        ),
        ({"x": [7.0] * N}, {}, r"all 40 training samples are the same: there is nothing to learn"),
        (
            {"image": [IMAGES[0]] * N, "label": BINARY_LABELS},
            {"features": "image"},
            r"all 40 training samples are the same: there is nothing to learn",
        ),
        (
            {"image": set_value(IMAGES, 5, encode_image(random_images(1, (1, 9, 8))[0])), "label": BINARY_LABELS},
            {"features": "image"},
            r"column 'image', row 5 is an image of \(1, 9, 8\), but the first is one of \(1, 8, 8\)",
        ),
        ({"label": [0] * N}, {}, r"column 'label' has the single label 0: there is nothing to learn"),
        ({"site": set_value(SITES, 7, None)}, {"client": "site"}, r"column 'site', row 7 is empty"),
        (
            {"site": set_value([float(k) for k in SITES], 7, 0.5)},
            {"client": "site"},
            r"column 'site', row 7 has client 0.5; clients are texts, or whole numbers",
        ),
        (
            {"site": set_value([float(k) for k in SITES], 7, float("inf"))},
            {"client": "site"},
            r"row 7 has client inf",
        ),
    ],
    ids=[
        *("client column", "label column", "half", "nan", "constant", "images", "mixed sizes", "one class", "owner"),
        *("half a client", "infinite client"),
    ],
)
def test_invalid_user_data_are_rejected_with_the_reason(
    tmp_path: Path, columns: Mapping[str, Any], options: Any, expected_text: str
) -> None:
    with pytest.raises(DataError, match=expected_text):
        check_raw_data(load(tmp_path, columns, **options))


def test_data_with_one_differing_sample_are_accepted(tmp_path: Path) -> None:
    assert load(tmp_path, {"x": [0.0] * (N - 1) + [1.0]}).train_x.max() == 1


def test_text_labels_are_numbered_in_sorted_order(tmp_path: Path) -> None:
    raw = load(tmp_path, {"label": ["well", "ill"] * (N // 2)})
    assert raw.train_y.tolist() == [1, 0] * (N // 2)
    assert make_federation(raw, Iid(), clients=4).class_names == ("ill", "well")


def test_a_truncated_training_file_is_rejected_by_name(tmp_path: Path) -> None:
    write_both_parts(tmp_path)
    file = tmp_path / "train.parquet"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(DataError, match=r"train.parquet can't be read, it is truncated"):
        make_folder_dataset(tmp_path).load(0)


def test_a_client_with_one_sample_is_rejected_with_its_size(tmp_path: Path) -> None:
    raw = load(tmp_path, {"site": set_value(SITES, 5, 77)}, client="site")
    with pytest.raises(DataError, match=r"fewer than 3 training samples at 1 client \(client 4 has 1\)"):
        make_federation(raw, Natural(), clients=None)


def test_clients_with_test_rows_only_are_counted(tmp_path: Path) -> None:
    """Site 3 has no test rows, and sites 8 and 9 have no training rows: test rows of these two belong to no client."""
    write_both_parts(tmp_path, N, site=SITES)
    test_sites = [(8 + k // 20) if site == 3 else site for k, site in enumerate(SITES)]
    write_image_table(tmp_path, "test", x=np.arange(N) / N, label=np.arange(N) % 3, site=test_sites)
    federation = make_federation(make_folder_dataset(tmp_path, client="site").load(0), Natural(), clients=None)
    assert federation.inputs.endswith(
        "; 10 test samples of 2 owners without training samples are held by the server only"
    )
    assert np.diff(federation.test.offsets).tolist() == [10, 10, 10, 0]
    assert len(federation.server_test.y) == N
    repeated = make_federation(load(tmp_path, {"site": SITES}, client="site"), Natural(), clients=None)
    assert "test samples of" not in repeated.inputs
    assert (
        "test samples of"
        not in make_federation(make_folder_dataset(tmp_path, client="site").load(0), Iid(), clients=3).inputs
    )


def test_more_clients_than_samples_are_rejected_with_a_feasible_number(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"clients=100000 needs 300000 training samples, 3 per client, .* feasible"):
        make_federation(load(tmp_path, {}), Iid(), clients=100_000)


def test_a_missing_attribute_value_is_rejected_with_its_row(tmp_path: Path) -> None:
    pictures = [encode_image(image) for image in random_images(8, (3, 8, 8))]
    rows = [0, 1] * 4
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=pictures, label=rows, place=set_value(["land", "water"] * 4, 2, None))
    with pytest.raises(DataError, match=r"train.parquet: column 'place', row 2 is empty"):
        Waterbirds(str(tmp_path), "hub", None, "uint8", 8).load(0)
    write_image_table(tmp_path, "train", image=pictures, label=["corgi"] * 8, place=set_value(["snow"] * 8, 2, None))
    with pytest.raises(DataError, match=r"train.parquet: column 'place', row 2 is empty"):
        Spawrious(str(tmp_path), None, None, "uint8", ["corgi", "labrador"], ["snow"], 8, 0.1).load(0)
    for part in ("train", "test"):
        write_image_table(tmp_path, part, image=pictures, celeb_id=[1] * 8, Smiling=rows, Male=set_value(rows, 6, None))
    with pytest.raises(DataError, match=r"train.parquet: column 'Male', row 6 is empty"):
        Celeba(str(tmp_path), "hub", None, "sample", 1.0, 5, "uint8", "Male").load(0)


def test_large_neighbouring_integer_ids_are_different_clients(tmp_path: Path) -> None:
    """Of int64 in one part and uint64 in the other: as floats, 2^53 and 2^53 + 1 would be one client."""
    ids = [2**53 + k % 4 for k in range(N)]
    write_both_parts(tmp_path, N, site=ids)
    write_part(tmp_path, "test", x=[k / N for k in range(N)], label=BINARY_LABELS, site=np.array(ids, np.uint64))
    raw = make_folder_dataset(tmp_path, client="site").load(0)
    assert list(raw.owner_names) == [str(2**53 + k) for k in range(4)]


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_pipes_folders_and_broken_links_are_rejected_as_data_files(tmp_path: Path, kind: str) -> None:
    """A pipe was passed over for the other kind of table, or waited for."""
    write_both_parts(tmp_path)
    file = tmp_path / "valid.csv"
    {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("nowhere"), "folder": Path.mkdir}[kind](file)
    with pytest.raises(DataError, match=r"valid.csv is no regular file, or a broken link: it is not read"):
        make_folder_dataset(tmp_path).load(0)


def test_large_images_are_rejected_before_they_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is needed for 40 decoded images of 64 bytes, and for the piece of the file that they come from."""
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "read_available_bytes", lambda: 5119.0)
    write_both_parts(tmp_path, N, image=IMAGES)
    with pytest.raises(
        OptionError, match=r"40 images of 1 x 8 x 8 needs at least 0.0 GB of memory, .* size=64 reduces them"
    ):
        make_folder_dataset(tmp_path, features="image").load(0)
