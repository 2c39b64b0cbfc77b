"""Normalisation layers of images: group norm or batch norm."""

from torch import nn


def make_norm(norm_name: str, groups: int, channels: int) -> nn.Module:
    """Return the layer `norm_name`, "group" or "batch", with a scale and a shift for each of `channels`."""
    return nn.GroupNorm(groups, channels) if norm_name == "group" else nn.BatchNorm2d(channels)
