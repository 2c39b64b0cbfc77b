"""Two padded 5x5 convolutions with ReLU and 2x2 max pooling, as in FedAvg's CNN, and the dense layers after them."""

from torch import nn


def make_layers(
    image_shape: tuple[int, int, int], channels: tuple[int, int], dense: int, n_classes: int
) -> nn.Sequential:
    """Return a network from images to logits [B, n_classes]: two 5x5 convolutions with pooling, and dense layers.

    Args:
        image_shape: number of channels, height and width of an image.
        channels: numbers of output channels of the first and of the second convolution.
        dense: number of units of the hidden dense layer; 0 leaves the layer out.
        n_classes: number of classes.
    """
    in_channels, height, width = image_shape
    n_features = channels[1] * (height // 4) * (width // 4)
    layers: list[nn.Module] = []
    for in_channels_of_layer, n_out in ((in_channels, channels[0]), channels):
        layers += [nn.Conv2d(in_channels_of_layer, n_out, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    if dense:
        layers += [nn.Linear(n_features, dense), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(dense or n_features, n_classes))
