"""Recurrent layers: one operation for all steps of a sequence, which some of torch's tools can't look into.

torch's fused kernels (oneDNN on CPUs, cuDNN on GPUs) are the fastest to train, but no one counts their FLOPs, and they
have no forward-mode derivatives; spelled out, as matrix products and gates, they have both. Nobody can train them side
by side in `torch.func.vmap` either way.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fedcohort.flat import has_recurrence


@contextmanager
def spelled_out(network: nn.Module) -> Iterator[None]:
    """Let recurrent layers of the network be computed without fused kernels; others are left as they are."""
    if not has_recurrence(network):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TF32 acceleration on top of oneDNN")  # setting any flag warns of it
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
            yield
