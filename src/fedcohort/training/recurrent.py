"""Recurrent layers without fused kernels, which some of torch's tools do not support.

torch's fused kernels (oneDNN on CPUs, cuDNN on GPUs) are the fastest in training. torch does not count their FLOPs, and
they have no forward-mode derivatives; layers of separate matrix products and gates have both. `torch.func.vmap`
supports neither kind.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from fedcohort.flat import has_recurrence


@contextmanager
def disable_fused_kernels(network: nn.Module) -> Iterator[None]:
    """Compute the recurrent layers of `network` without fused kernels in the `with` block."""
    if not has_recurrence(network):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TF32 acceleration on top of oneDNN")  # setting any flag warns of it
        with torch.backends.mkldnn.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
            yield
