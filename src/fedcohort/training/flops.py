"""The floating-point operations of a forward pass."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import flop_counter

from fedcohort.data.federation import Federation
from fedcohort.training.recurrent import disable_fused_kernels

aten_ops = torch.ops.aten


class _FlopCountingMode(flop_counter._FlopCounterMode):
    """A dispatch mode of torch's FLOP counter that does not import `torch._dynamo`, which takes 1.7 s.

    torch excludes the method below from compilation by a wrapper, whose first call imports the compiler. Nothing is
    compiled here. Depends on `torch.utils.flop_counter._FlopCounterMode` (torch 2.13.0).
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that torch does not wrap this class to exclude it from compilation."""
        return False

    __torch_dispatch__ = inspect.unwrap(flop_counter._FlopCounterMode.__torch_dispatch__)


def count_forward_flops(network: nn.Module, federation: Federation) -> float:
    """Return the FLOPs of one sample's forward pass; the sample is zeros in the shape of those in `federation`.

    They are those of matrix products and convolutions in `network`, 2 for each multiplication with its addition, as
    `torch.utils.flop_counter` counts them. torch does not count products with vectors and fused attention, which are
    added here.
    """
    zero_input = torch.zeros_like(federation.server_test.x[:1])
    was_in_training_mode = network.training
    flops_counter = flop_counter.FlopCounterMode(display=False, custom_mapping=_FLOPS_OF_VECTOR_PRODUCTS)
    network.eval()
    with disable_fused_kernels(network), _disable_fused_attention(), _FlopCountingMode(flops_counter), torch.no_grad():
        network(zero_input)
    network.train(was_in_training_mode)
    return float(flops_counter.get_total_flops())


_FLOPS_OF_VECTOR_PRODUCTS = {  # FLOPs from the shapes of the operands
    aten_ops.mv: lambda matrix_shape, vector_shape, **_: 2 * prod(matrix_shape),
    aten_ops.addmv: lambda bias_shape, matrix_shape, vector_shape, **_: 2 * prod(matrix_shape),
    aten_ops.dot: lambda a, b, **_: 2 * prod(a),
    aten_ops._trilinear: lambda a, weight_shape, b, *_, **__: 2 * a[0] * prod(weight_shape),  # of nn.Bilinear
}


@contextmanager
def _disable_fused_attention() -> Iterator[None]:
    """Compute attention by matrix products in the `with` block, as torch does not count its fused kernels."""
    attention_backend = torch.backends.mha
    was_fast_path_enabled = attention_backend.get_fastpath_enabled()
    attention_backend.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        attention_backend.set_fastpath_enabled(was_fast_path_enabled)
