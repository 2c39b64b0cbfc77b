"""Two padded 5x5 convolutions with ReLU and 2x2 max pooling, as in FedAvg's CNN, and the dense layers after them."""

from torch import nn


def make_two_conv_network(
    image_shape: tuple[int, int, int], conv_channels: tuple[int, int], n_dense_units: int, n_classes: int
) -> nn.Sequential:
    """Return a network from images to logits [B, n_classes]: two 5x5 convolutions with pooling, and dense layers.

    Args:
        image_shape: number of channels, height and width of an image.
        conv_channels: numbers of output channels of the first and of the second convolution.
        n_dense_units: number of units of the hidden dense layer; 0 leaves the layer out.
        n_classes: number of classes.
    """
    in_channels, height, width = image_shape
    n_features = conv_channels[1] * (height // 4) * (width // 4)
    layers: list[nn.Module] = []
    for in_channels_of_layer, out_channels in ((in_channels, conv_channels[0]), conv_channels):
        layers += [nn.Conv2d(in_channels_of_layer, out_channels, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    if n_dense_units:
        layers += [nn.Linear(n_features, n_dense_units), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(n_dense_units or n_features, n_classes))
