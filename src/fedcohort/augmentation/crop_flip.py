"""Random crops of the padded image, with random mirroring: the usual augmentation of CIFAR.

He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, arXiv 1512.03385, Sec. 4.2.

    output:  x'(i, j) = x(i + d, j + r), or x(i + d, W - 1 - j + r) with probability flip, 0 outside of the image
    shifts:  d, r ~ U{-padding, ..., padding}, drawn for each sample in each pass

Padding has the value 0 of the network's inputs, which is the mean of standardised pixels. A client's draws in a round
are a function of (seed, round, client) and of the number of its samples, and do not depend on other clients. FLASH and
FedMABA train on CIFAR, but none of the papers mentions augmentation, so that it is off by default.

Departures from the paper: it pads images of 32 pixels by 4. The same 4 are half the width of a digits image, 8.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from fedcohort import ranges
from fedcohort.augmentation.base import Augmentation
from fedcohort.component import Requirement

if TYPE_CHECKING:
    from torch import Tensor

IMAGE_REQUIREMENT = Requirement(
    lambda facts: facts.federation and facts.federation.has_images,
    "{option} needs image inputs [channels, height, width], which {dataset} does not have: choose augmentation=none",
)


@dataclass(frozen=True)
class CropFlip(Augmentation):
    """An augmentation that crops and mirrors training images at random.

    Attributes:
        padding: largest shift of an image in each direction, in pixels.
        flip: probability that an image is mirrored.
    """

    padding: int
    flip: float

    requirements: ClassVar[frozenset[Requirement]] = frozenset({IMAGE_REQUIREMENT})

    def __post_init__(self) -> None:
        ranges.integer("padding", self.padding, "[0, 1000]")
        ranges.number("flip", self.flip, "[0, 1]")

    @property
    def identity(self) -> bool:
        return self.padding == 0 and self.flip == 0

    def notices(self, choice: str) -> Sequence[str]:
        if not self.identity:
            return ()
        return (f"augmentation={choice} has no effect with augmentation.padding=0 and augmentation.flip=0",)

    def change(self, x: "Float[Tensor, 'n *shape']", rng: np.random.Generator) -> "Float[Tensor, 'n *shape']":
        """Return the images `x`, [n, channels, height, width], each shifted and possibly mirrored, drawn from `rng`."""
        first_crop_rows, first_crop_columns = rng.integers(-self.padding, self.padding + 1, (2, len(x)))
        return crop_and_flip(x, first_crop_rows, first_crop_columns, rng.random(len(x)) < self.flip)


def crop_and_flip(
    images: "Float[Tensor, 'n c h w']",
    first_crop_rows: np.ndarray,
    first_crop_columns: np.ndarray,
    is_mirrored: np.ndarray,
) -> "Float[Tensor, 'n c h w']":
    """Return a crop of each image, some mirrored, padded with 0 to the size of the image.

    Args:
        images: images as the network sees them.
        first_crop_rows: first row of each image's crop, integers [n]; negative if it begins in the padding.
        first_crop_columns: first column of each image's crop, integers [n].
        is_mirrored: whether each image is mirrored, bool [n].
    """
    import torch  # noqa: PLC0415 - options are checked before torch is imported

    n_images, _, height, width = images.shape
    source_rows = first_crop_rows[:, None] + np.arange(height)
    source_columns = first_crop_columns[:, None] + np.where(
        is_mirrored[:, None], np.arange(width)[::-1], np.arange(width)
    )
    is_padding = ((source_rows < 0) | (source_rows >= height))[:, :, None] | (
        (source_columns < 0) | (source_columns >= width)
    )[:, None, :]
    clipped_rows = torch.from_numpy(source_rows.clip(0, height - 1)).to(images.device)[:, :, None]
    clipped_columns = torch.from_numpy(source_columns.clip(0, width - 1)).to(images.device)[:, None, :]
    cropped_images = images.permute(0, 2, 3, 1)[
        torch.arange(n_images, device=images.device)[:, None, None], clipped_rows, clipped_columns
    ]
    cropped_images.masked_fill_(torch.from_numpy(is_padding).to(images.device)[..., None], 0)
    return torch.empty_like(images).copy_(cropped_images.permute(0, 3, 1, 2))
