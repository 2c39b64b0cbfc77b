"""The length of a local optimizer's path for a constant gradient of 1 (FedNova's norm of a_i).

A scalar x is trained once for all clients: from 0, with the same optimizer, learning rate and regularisers, and g = 1
at every step. If the optimizer is linear in the gradients, K steps move a client by -lr a_K times a weighted mean of
its gradients, with a_K = -x_K / lr. The paper defines a_K as the l1 norm of the gradients' coefficients. Both are equal
if no coefficient is negative, which holds up to lr mu = 1 for a proximal term. Weight decay and clipping count as part
of the gradient, as in FedNova's code, and do not apply to the scalar.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from fedcohort.client.base import Client
from fedcohort.flat import Layout, TensorBlock
from fedcohort.hook import ClientContext, ClientHook
from fedcohort.rng import new_generator

SCALAR_LAYOUT = Layout((TensorBlock("x", (1,), 0),), (), ())


class GradientCoefficientNorms:
    """FedNova's norm a_K of an optimizer's gradient coefficients, for any number of steps K.

    It is -x_K / lr of a scalar x_K that K steps move from 0, with the gradient 1 in every step.

    Attributes:
        client: the optimizer and its options.
        hooks: hooks of the regularisers, whose model is the scalar.
    """

    def __init__(self, client: Client, hooks: Sequence[ClientHook]) -> None:
        self.client, self.hooks = client, hooks
        self._lr = float("nan")
        self._known_norms: list[float] = []
        self._next_norms: Iterator[float] = iter(())

    def __call__(self, n_steps: int, lr: float) -> float:
        """Return a_K after K = `n_steps` steps at the learning rate `lr`; K if the optimizer is not linear."""
        if not self.client.linear or (self.client.plain and not self.hooks):
            return float(n_steps)
        if lr != self._lr:
            self._lr, self._known_norms, self._next_norms = lr, [0.0], self._yield_coefficient_norms(lr)
        self._known_norms += islice(self._next_norms, max(0, n_steps + 1 - len(self._known_norms)))
        return self._known_norms[n_steps]

    def _yield_coefficient_norms(self, lr: float) -> Iterator[float]:
        """Yield the norms a_1, a_2, ... after 1, 2, ... local steps with the learning rate `lr`."""
        x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        g = torch.ones_like(x.data)
        x.grad = g
        optimizer = self.client.optimizer(x, lr)
        for parameter_group in optimizer.param_groups:
            parameter_group["weight_decay"] = 0.0
        ctx = ClientContext(0, 0, SCALAR_LAYOUT, lambda purpose: new_generator(0, purpose))
        corrections = [hook.begin(torch.zeros_like(g), {}, {}, ctx) for hook in self.hooks]
        while True:
            g.fill_(1.0)
            for correction in corrections:
                correction.correct(g, x.data)
            optimizer.step()
            yield -x.item() / lr
