"""A user's images are stored as bytes, which the network divides by 255."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.dataset.user_table import inputs as module
from fedcohort.errors import DataError, OptionError
from folder_tables import make_folder_dataset, write_both_parts
from image_tables import encode_image, random_images
from optional_values import not_none

PIXELS = random_images(40, (3, 4, 4))
IMAGES = [encode_image(image) for image in PIXELS]


def test_uint8_pixels_give_the_same_inputs_as_float32(tmp_path: Path) -> None:
    for columns, options in (
        ({"image": IMAGES}, {}),
        ({"image": list(PIXELS.reshape(40, 48))}, {"shape": [3, 4, 4]}),
    ):
        write_both_parts(tmp_path, **columns)
        raw, floats = (
            make_folder_dataset(tmp_path, features="image", scale=255, pixels=kind, **options).load(0)
            for kind in ("uint8", "auto")
        )
        np.testing.assert_array_equal(raw.train_x, PIXELS)
        assert floats.scale is None
        assert [str(item.train_x.dtype) for item in (raw, floats)] == ["uint8", "float32"]
        np.testing.assert_array_equal(not_none(raw.scale).convert(raw.test_x), floats.test_x)
        assert (floats.converted_scale, raw.converted_scale) == (raw.scale, None)
        assert raw.inputs.endswith("; kept as bytes")


def test_pixels_auto_keeps_uint8_only_for_large_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 images of 48 pixels are 15,360 bytes as float32."""
    write_both_parts(tmp_path, image=IMAGES)
    for limit, kind in ((15_360, np.float32), (15_359, np.uint8)):
        monkeypatch.setattr(module, "MAX_AUTO_BYTES", limit)
        assert make_folder_dataset(tmp_path, features="image", scale=255).load(0).train_x.dtype == kind
    raw = make_folder_dataset(tmp_path, features="image").load(0)
    assert (raw.train_x.max(), raw.converted_scale) == (255, None), "only 255 is a divisor"


@pytest.mark.parametrize("options", [{"scale": 1.0}, {"features": None}, {"scale": 1.0, "standardise": "train"}])
def test_pixels_uint8_rejects_other_scales_and_standardisation(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"^pixels must be auto or float32 .*, got 'uint8'"):
        make_folder_dataset(tmp_path, **{"features": "image", "scale": 255, "pixels": "uint8", **options})


@pytest.mark.parametrize("column", [[[0.5] * 48] * 40, [[1] * 48] * 40])
def test_pixels_uint8_requires_images(tmp_path: Path, column: list[Any]) -> None:
    write_both_parts(tmp_path, image=column)
    with pytest.raises(DataError, match=r"dataset.pixels=uint8 needs images, but a sample is \w+ \[48\]"):
        make_folder_dataset(tmp_path, features="image", scale=255, pixels="uint8").load(0)
