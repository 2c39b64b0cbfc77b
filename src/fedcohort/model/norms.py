"""Layers that norm images: by groups of a sample's own channels, or by the batch."""

from torch import nn


def make(norm: str, groups: int, channels: int) -> nn.Module:
    """Make the layer that `norm` names (group or batch), with a scale and a shift for each of `channels`."""
    return nn.GroupNorm(groups, channels) if norm == "group" else nn.BatchNorm2d(channels)
