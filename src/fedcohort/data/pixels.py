"""Pixels that are kept in memory as bytes and converted to numbers batch by batch.

    x = (pixel / 255 - mean) / sd, channel by channel, in float32

As float32 an image takes four times the memory. The network converts byte inputs before its first layer, by the same
operations in the same order as `PixelScale.convert`. Results are therefore equal to the bit with the same engine.
Perceptrons and linear models need float32: their hand-written gradients (`training/chain.py`, `training/dual.py`) read
the inputs directly.
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
    """Mean and standard deviation by which pixels are standardised.

    Attributes:
        mean: mean of pixels in [0, 1], one number per channel.
        sd: standard deviation of pixels in [0, 1], one number per channel.
    """

    mean: tuple[float, ...]
    sd: tuple[float, ...]

    def convert(self, pixels: UInt8[np.ndarray, "n c h w"]) -> Float32[np.ndarray, "n c h w"]:
        """Return uint8 pixels standardised, as a new NumPy array."""
        x = pixels.astype(np.float32)
        x /= np.float32(255)
        x -= np.array(self.mean, np.float32)[:, None, None]
        x /= np.array(self.sd, np.float32)[:, None, None]
        return x

    def convert_tensor(self, pixels: "UInt8[Tensor, 'n c h w']") -> "Float32[Tensor, 'n c h w']":
        """Return uint8 pixels standardised, as a new tensor on their device."""
        max_pixel, mean, sd = pixel_scale_tensor(self, pixels.device)
        return pixels.float().div(max_pixel).sub(mean).div(sd)

    def attach_to_network(self, network: "nn.Module") -> None:
        """Register a hook on `network` that standardises its uint8 inputs; float inputs are left unchanged."""
        network.register_forward_pre_hook(self)  # which has no tensors, so that copies of the network can share it

    def __call__(self, network: "nn.Module", inputs: "tuple[Tensor, ...]") -> "tuple[Tensor, ...] | None":
        """Return the arguments of the network's forward pass with the uint8 pixels standardised; None for float inputs.

        Args:
            network: the network, whose hook this is; not used.
            inputs: arguments of the forward pass, the pixels [B, channels, height, width] first.
        """
        x, *other_inputs = inputs
        return None if x.dtype.is_floating_point else (self.convert_tensor(x), *other_inputs)


@lru_cache(maxsize=8)
def pixel_scale_tensor(pixel_scale: PixelScale, device: "torch.device") -> "Tensor":
    """Return 255, the channels' means and their standard deviations as one tensor, [3, channels, 1, 1].

    Args:
        pixel_scale: normalisation of the pixels.
        device: device of the tensor.
    """
    import torch  # noqa: PLC0415 - datasets are made before torch is imported

    scale_rows = [[255.0] * len(pixel_scale.sd), [*pixel_scale.mean], [*pixel_scale.sd]]
    return torch.tensor(scale_rows, device=device)[:, :, None, None]
