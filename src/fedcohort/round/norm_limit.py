"""The limit of the norm of clients' updates and of the server's step (`update_limit`)."""

import logging

import torch
from torch import Tensor

from fedcohort.flat import FlatModel

log = logging.getLogger("fedcohort")


def compute_norm_limit(global_model: FlatModel, update_limit: float) -> float:
    """Return the largest norm of an update and of the server's step: `update_limit` times (1 + the norm of the model).

    Args:
        global_model: the global model.
        update_limit: the option `update_limit`.
    """
    return update_limit * (1.0 + float(torch.linalg.vector_norm(global_model.w)))


@torch.no_grad()
def compute_new_parameters(server: FlatModel, displacement: Tensor, update_limit: float, round: int) -> Tensor | None:
    """Return the model's parameters after the server's step, [P]; None after a warning if the step is not sound.

    A step is sound if the new parameters are finite and the norm of the step is at most `compute_norm_limit`.

    Args:
        server: the global model before the step.
        displacement: the step, [P].
        update_limit: the option `update_limit`.
        round: number of the round, from 0.
    """
    norm_limit = compute_norm_limit(server, update_limit)
    new_parameters = (server.w.double() + displacement).to(server.w.dtype)
    step_norm = torch.linalg.vector_norm(displacement).double()
    step_length, is_model_finite = torch.stack([step_norm, torch.isfinite(new_parameters).all().double()]).tolist()
    if step_length <= norm_limit and is_model_finite:
        return new_parameters
    log.warning(
        "round %d: the server's step is not finite, or longer than update_limit allows (%.3g, the limit is %.3g), "
        "and was excluded, so that the model stays the same: lower server.lr",
        round + 1,
        step_length,
        norm_limit,
    )
    return None
