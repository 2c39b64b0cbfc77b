"""step_projection: projection of each arrived update on the server's step, layer by layer (GPFL).

The value of this signal is a function: it takes a weight for each arrived client, [arrived], which need not sum to 1,
and returns the projections on the step G that these weights give, float64 [arrived]:

    G = sum_j weights_j U_j
    c_i:  mean over the tensors l of trainable parameters with ||G^l|| > 0 of <U_i^l, G^l> / ||G^l||

All are NaN if G is zero. An update that is not finite makes all of them not finite.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from fedcohort.signal.access import SignalAccess
from fedcohort.signal.base import Derived
from fedcohort.types import Values

if TYPE_CHECKING:
    from torch import Tensor


def make_step_projection(access: SignalAccess, updates: "Tensor") -> Callable[[Values], Values]:
    """Return a function of weights [arrived] that returns the mean projection of each update on the aggregated step.

    The step is the weighted sum of the updates. The mean is over the parameters of the network, such as a layer's
    weight, and the projection of an update on a step of length 0 is left out. Each result is float64 [arrived].

    Args:
        access: access to the network, for the sizes of its parameters.
        updates: updates of the clients that arrived, [arrived, P].
    """
    layer_sizes = [parameter.numel() for parameter in access.copy().parameters() if parameter.requires_grad]

    def project_on_mean_step(weights: Values) -> Values:
        step_weights = torch.as_tensor(np.asarray(weights), dtype=torch.float64, device=updates.device)
        layer_projections = []
        for layer_updates in map(torch.Tensor.double, updates.split(layer_sizes, dim=1)):
            layer_step = step_weights @ layer_updates
            step_norm = torch.linalg.vector_norm(layer_step)
            if step_norm != 0:
                layer_projections.append(layer_updates @ layer_step / step_norm)
        if not layer_projections:
            return np.full(len(updates), np.nan)
        return np.asarray(torch.stack(layer_projections).mean(dim=0).cpu().numpy())

    return project_on_mean_step


signal = Derived(reveals="nothing beyond the updates", make=make_step_projection)
