"""TensorFlow's initial weights, which are the defaults of its layers.

weight ~ U(-b, b),   b = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010);   bias = 0
"""

from torch import nn


def draw_glorot_weights(network: nn.Module) -> None:
    """Draw new weights of all convolutions and dense layers of `network`, in their order, by Glorot's uniform rule.

    Biases become 0; other layers do not change.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
