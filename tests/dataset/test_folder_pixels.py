"""A user's images are stored as bytes, which the network divides by 255."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.dataset.user_table import inputs as module
from fedcohort.errors import DataError, OptionError
from folder_toy import folder, table
from known import known
from pictures_toy import encode, noise

PIXELS = noise(40, (3, 4, 4))
IMAGES = [encode(image) for image in PIXELS]


def test_bytes_become_the_same_numbers(tmp_path: Path) -> None:
    for columns, options in (
        ({"image": IMAGES}, {}),
        ({"image": list(PIXELS.reshape(40, 48))}, {"shape": [3, 4, 4]}),
    ):
        table(tmp_path, **columns)
        raw, floats = (
            folder(tmp_path, features="image", scale=255, pixels=kind, **options).load(0) for kind in ("uint8", "auto")
        )
        np.testing.assert_array_equal(raw.train_x, PIXELS)
        assert floats.scale is None
        assert [str(item.train_x.dtype) for item in (raw, floats)] == ["uint8", "float32"]
        np.testing.assert_array_equal(known(raw.scale).convert(raw.test_x), floats.test_x)
        assert (floats.converted, raw.converted) == (raw.scale, None)
        assert raw.inputs.endswith("; kept as bytes")


def test_auto_keeps_bytes_only_for_large_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 images of 48 pixels are 15,360 bytes as float32."""
    table(tmp_path, image=IMAGES)
    for limit, kind in ((15_360, np.float32), (15_359, np.uint8)):
        monkeypatch.setattr(module, "AUTO_UINT8_BYTES", limit)
        assert folder(tmp_path, features="image", scale=255).load(0).train_x.dtype == kind
    raw = folder(tmp_path, features="image").load(0)
    assert (raw.train_x.max(), raw.converted) == (255, None), "only 255 is a divisor"


@pytest.mark.parametrize("options", [{"scale": 1.0}, {"features": None}, {"scale": 1.0, "standardise": "train"}])
def test_bytes_are_divided_by_255_and_nothing_else(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"^pixels must be auto or float32 .*, got 'uint8'"):
        folder(tmp_path, **{"features": "image", "scale": 255, "pixels": "uint8", **options})


@pytest.mark.parametrize("column", [[[0.5] * 48] * 40, [[1] * 48] * 40])
def test_what_are_no_bytes_are_not_kept(tmp_path: Path, column: list[Any]) -> None:
    table(tmp_path, image=column)
    with pytest.raises(DataError, match=r"dataset.pixels=uint8 needs images, but a sample is \w+ \[48\]"):
        folder(tmp_path, features="image", scale=255, pixels="uint8").load(0)
