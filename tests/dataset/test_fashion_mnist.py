import io
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from fedcohort.dataset import hub
from fedcohort.dataset.base import Raw
from fedcohort.dataset.fashion_mnist import TABLE_SPEC, FashionMnist
from fedcohort.errors import DataError

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "fashion_mnist"
(MEAN,), (SD,) = TABLE_SPEC.pixel_scale.mean, TABLE_SPEC.pixel_scale.sd
HUB = "zalando-datasets/fashion_mnist"


def write(folder: Path, **columns: object) -> FashionMnist:
    for part in ("train", "test"):
        pa.parquet.write_table(pa.table(columns), folder / f"{part}.parquet")
    return FashionMnist(str(folder), HUB, None, "auto")


def pixels(n: int = 12) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, 28, 28)).astype(np.uint8)


@pytest.fixture(scope="module")
def real() -> Raw:
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data/fashion_mnist beside the repository: the real data are shared, not committed")
    return FashionMnist(str(SHARED), HUB, None, "auto").load(0)


def test_the_real_fashion_mnist_files_have_the_documented_content(real: Raw) -> None:
    assert real.train_x.shape == (60_000, 1, 28, 28)
    assert real.test_x.shape == (10_000, 1, 28, 28)
    assert real.train_x.dtype == np.float32
    assert np.bincount(real.train_y).tolist() == [6000] * 10
    assert np.bincount(real.test_y).tolist() == [1000] * 10


def test_normalised_real_pixels_have_mean_zero_and_deviation_one(real: Raw) -> None:
    assert real.train_x.mean(dtype=np.float64) == pytest.approx(0, abs=1e-3)
    assert real.train_x.std(dtype=np.float64) == pytest.approx(1, abs=1e-3)
    # The first training image is an ankle boot: its last row is empty, its sole is not.
    assert real.train_y[0] == 9
    assert real.train_x[0, 0, 27].max() == pytest.approx(-MEAN / SD)
    assert real.train_x[0, 0, 23].max() > 1


def test_pixel_lists_and_encoded_images_give_equal_inputs(tmp_path: Path) -> None:
    images = []
    for image in pixels():
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        images.append({"bytes": buffer.getvalue(), "path": None})
    labels = [i % 10 for i in range(12)]
    lists = write(tmp_path, image=pixels().reshape(12, 784).tolist(), label=labels).load(0)
    encoded = write(tmp_path, image=images, label=labels).load(0)
    np.testing.assert_array_equal(lists.train_x, encoded.train_x)
    np.testing.assert_allclose(lists.test_x[:, 0], (pixels() / 255 - MEAN) / SD, atol=1e-6)
    assert encoded.test_y.tolist() == labels


def test_missing_columns_and_wrong_image_sizes_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train.parquet has no column 'label'; it has image, target"):
        write(tmp_path, image=[[0] * 784], target=[1]).load(0)
    with pytest.raises(DataError, match=r"train.parquet has no column 'image'; it has x, label"):
        write(tmp_path, x=[[0] * 784], label=[1]).load(0)
    with pytest.raises(DataError, match=r"'image' must hold grey images of 28 x 28, but holds \(1024,\)"):
        write(tmp_path, image=[[0] * 1024], label=[1]).load(0)
    with pytest.raises(DataError, match=r"row 0 has label 10"):
        write(tmp_path, image=[[0] * 784], label=[10]).load(0)


def test_a_truncated_parquet_file_is_rejected_by_name(tmp_path: Path) -> None:
    dataset = write(tmp_path, image=pixels().reshape(12, 784).tolist(), label=[0] * 12)
    file = tmp_path / "test.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"test.parquet can't be read, it is truncated"):
        dataset.load(0)


def test_without_a_path_fashion_mnist_is_loaded_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[str] = []
    columns = {"image": pixels(2).tolist(), "label": [3, 4]}
    parts = datasets.DatasetDict({part: datasets.Dataset.from_dict(columns) for part in ("train", "test")})

    def load(name: str) -> datasets.DatasetDict:
        requests.append(name)
        return parts

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(hub, "check_network", lambda: "")
    raw = FashionMnist(None, HUB, None, "auto").load(0)
    assert requests == [HUB]
    assert raw.train_x.shape == (2, 1, 28, 28)
