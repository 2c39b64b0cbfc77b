"""Pixels that stand in memory as they were stored, a byte each, and are made numbers batch by batch.

    x = (pixel / 255 - mean) / sd, channel by channel, in float32

As float32 an image takes four times the memory. The network converts what it is given as bytes before its first layer,
by the same operations in the same order as `PixelScale.convert`: the bits of a run are the same either way, where the
engine is the same. Perceptrons and linear models, whose inputs are read beside the network (`training/chain.py`,
`training/dual.py`), want float32 for their hand-written gradients.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32, UInt8

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass(frozen=True)
class PixelScale:
    """What pixels become.

    Attributes:
        mean, sd: of pixels in [0, 1], one number for each channel.
    """

    mean: tuple[float, ...]
    sd: tuple[float, ...]

    def convert(self, pixels: UInt8[np.ndarray, "n c h w"]) -> Float32[np.ndarray, "n c h w"]:
        """The pixels as the network sees them, in an array of their own."""
        x = pixels.astype(np.float32)
        x /= np.float32(255)
        x -= np.array(self.mean, np.float32)[:, None, None]
        x /= np.array(self.sd, np.float32)[:, None, None]
        return x

    def numbers(self, pixels: "UInt8[Tensor, 'n c h w']") -> "Float32[Tensor, 'n c h w']":
        """The pixels as the network sees them."""
        top, mean, sd = channels_of(self, pixels.device)
        return pixels.float().div(top).sub(mean).div(sd)

    def attach(self, network: "nn.Module") -> None:
        """Have the network convert inputs that are bytes, and leave others as they are; its tensors stay the same."""
        network.register_forward_pre_hook(Conversion(self))


class Conversion:
    """A hook of a network that converts its inputs; it holds no tensors, so that copies of the network may share it."""

    def __init__(self, scale: PixelScale) -> None:
        self.scale = scale

    def __call__(self, network: "nn.Module", inputs: "tuple[Tensor, ...]") -> "tuple[Tensor, ...] | None":
        x, *rest = inputs
        if x.dtype.is_floating_point:
            return None
        return (self.scale.numbers(x), *rest)


@lru_cache(maxsize=8)
def channels_of(scale: PixelScale, device: "torch.device") -> "Tensor":
    """255, the mean and the deviation, each [channels, 1, 1], on the device."""
    import torch  # noqa: PLC0415 - datasets are made before torch is imported

    rows = [[255.0] * len(scale.sd), [*scale.mean], [*scale.sd]]
    return torch.tensor(rows, device=device)[:, :, None, None]
