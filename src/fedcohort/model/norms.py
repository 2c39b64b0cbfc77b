"""Normalisation layers of images: group norm or batch norm."""

from torch import nn


def make_norm(norm_name: str, norm_groups: int, n_channels: int) -> nn.Module:
    """Return a normalisation layer for images with a scale and a shift for each channel.

    Args:
        norm_name: "group" for group norm, "batch" for batch norm.
        norm_groups: number of groups of channels for group norm, which divides `n_channels`.
        n_channels: number of channels.
    """
    return nn.GroupNorm(norm_groups, n_channels) if norm_name == "group" else nn.BatchNorm2d(n_channels)
