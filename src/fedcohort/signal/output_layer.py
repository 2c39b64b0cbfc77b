"""output_layer: the update of the network's last layer, a row of its C x F weights and then its C biases (HiCS-FL).

The last layer is that of the last two tensors of trainable parameters: a matrix [C, F] and a vector [C].
"""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from fedcohort.component import Facts, Requirement
from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived

if TYPE_CHECKING:
    from torch import Tensor


def slice_output_layer(access: SignalAccess, updates: "Tensor") -> Float64[np.ndarray, "_n d"]:
    """Return the weights and biases of the output layer in each update, float64 [arrived, C F + C].

    The layer maps F features to C classes.

    Args:
        access: access to the network, for the size of its output layer.
        updates: updates of the clients that arrived, [arrived, P].
    """
    output_weight, output_bias = [parameter for parameter in access.copy().parameters() if parameter.requires_grad][-2:]
    return np.asarray(updates[:, -(output_weight.numel() + output_bias.numel()) :].double().cpu().numpy())


def has_output_layer(facts: Facts) -> bool | None:
    """Return whether the network ends with a matrix and a bias for each class; None before the network is built.

    Args:
        facts: properties of the composed run, among them the network's tensors.
    """
    if facts.layout is None or facts.federation is None:
        return None
    shapes = [tensor_block.shape for tensor_block in facts.layout.parameters[-2:]]
    n_classes = facts.federation.n_classes
    return len(shapes) == 2 and len(shapes[0]) == 2 and shapes[0][0] == n_classes and shapes[1] == (n_classes,)


signal = Derived(
    reveals="nothing beyond the updates",
    make=slice_output_layer,
    requirement=Requirement(
        has_output_layer,
        "{option} reads the update of the network's output layer, but the last parameters of this network are not a "
        "linear layer with a bias: choose another model or selector",
    ),
)
