"""Random crops of the padded image, mirrored at random: what networks are usually trained with on CIFAR.

He et al., "Deep Residual Learning for Image Recognition" (2016), Sec. 4.2.

    x'(i, j) = x(i + d, j + r), or x(i + d, W - 1 - j + r) with probability flip,   0 outside of the image
    d, r ~ U{-padding, ..., padding}, for each sample and pass anew

Padding is 0 as the network sees it: the mean where pixels are standardised. What a client draws in a round is a
function of (seed, round, client) and of how many samples it trains on, whoever else is selected. FLASH and FedMABA
train on CIFAR; neither says that it augments its images, nor does any other of the papers: it is off by default.

Departures from the paper: it pads 4 pixels of 32; the same 4 are half of a digit's 8.
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

IMAGES = Requirement(
    lambda run: run.federation and run.federation.has_images,
    "{option} moves and mirrors images [channels, height, width], and the inputs of {dataset} are none: choose "
    "augmentation=none",
)


@dataclass(frozen=True)
class CropFlip(Augmentation):
    """The augmentation, with its options.

    Attributes:
        padding: pixels by which an image may be moved, up, down, left and right.
        flip: probability that it is mirrored.
    """

    padding: int
    flip: float

    requirements: ClassVar[frozenset[Requirement]] = frozenset({IMAGES})

    def __post_init__(self) -> None:
        ranges.integer("padding", self.padding, "[0, 1000]")
        ranges.number("flip", self.flip, "[0, 1]")

    @property
    def identity(self) -> bool:
        return self.padding == 0 and self.flip == 0

    def notices(self, choice: str) -> Sequence[str]:
        if not self.identity:
            return ()
        return (f"augmentation={choice} with augmentation.padding=0 and augmentation.flip=0 leaves images as they are",)

    def change(self, x: "Float[Tensor, 'n *shape']", rng: np.random.Generator) -> "Float[Tensor, 'n *shape']":
        """Return the images [n, channels, height, width], each moved and perhaps mirrored."""
        down, right = rng.integers(-self.padding, self.padding + 1, (2, len(x)))
        return moved(x, down, right, rng.random(len(x)) < self.flip)


def moved(
    x: "Float[Tensor, 'n c h w']", down: np.ndarray, right: np.ndarray, mirrored: np.ndarray
) -> "Float[Tensor, 'n c h w']":
    """Return each image x[:, down:, right:], padded with 0 to its size, and mirrored where `mirrored` says so.

    Args:
        x: images.
        down: the row at which each one's crop begins, integers [n], negative in the padding.
        right: the column, likewise.
        mirrored: bool [n].
    """
    import torch  # noqa: PLC0415 - torch only once the words are right

    n, _, height, width = x.shape
    rows = down[:, None] + np.arange(height)
    columns = right[:, None] + np.where(mirrored[:, None], np.arange(width)[::-1], np.arange(width))
    outside = ((rows < 0) | (rows >= height))[:, :, None] | ((columns < 0) | (columns >= width))[:, None, :]
    i = torch.from_numpy(rows.clip(0, height - 1)).to(x.device)[:, :, None]
    j = torch.from_numpy(columns.clip(0, width - 1)).to(x.device)[:, None, :]
    found = x.permute(0, 2, 3, 1)[torch.arange(n, device=x.device)[:, None, None], i, j]
    found.masked_fill_(torch.from_numpy(outside).to(x.device)[..., None], 0)
    return torch.empty_like(x).copy_(found.permute(0, 3, 1, 2))
