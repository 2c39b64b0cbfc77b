"""A forward pass of two samples before a run, which checks the network's and the objective's results.

Clients and evaluations share the run's inputs, so that a network that changes them in place would spoil all data. The
probe works on copies, and changes neither the network's statistics nor the global generators.
"""

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort.contracts import check_tensor, contract_error
from fedcohort.data.federation import Federation
from fedcohort.errors import ComponentError
from fedcohort.objective.base import Objective
from fedcohort.rng import seeded_torch
from fedcohort.training.positions import adapt_objective


def check_network_outputs(network: nn.Module, federation: Federation) -> Tensor:
    """Check `network` in eval and in train mode, and return its logits of two samples of `federation`, [2, ..., C].

    Raises:
        ComponentError: the network has no usable parameters, or changes its inputs, or returns invalid logits.
    """
    _reject_lazy_parameters(network)
    with _with_fixed_generators():
        network_copy = copy.deepcopy(network)
        _compute_checked_logits(network_copy.eval(), federation)
        logits = _compute_checked_logits(network_copy.train(), federation)
    if not logits.requires_grad:
        raise ComponentError(
            "forward must return logits with a gradient to the parameters, got detached ones: remove detach or no_grad"
        )
    return logits


def _reject_lazy_parameters(network: nn.Module) -> None:
    lazy_parameters = [parameter_name for parameter_name, p in network.named_parameters() if nn.parameter.is_lazy(p)]
    if lazy_parameters:
        raise ComponentError(
            f"the network must have no lazy layer, got {lazy_parameters[0]!r} without a shape: set its number of inputs"
        )
    trained_parameters = [(parameter_name, p) for parameter_name, p in network.named_parameters() if p.requires_grad]
    if not trained_parameters:
        raise ComponentError(
            "the network must have a trainable parameter, got none: set requires_grad=True for the trained ones"
        )
    for parameter_name, p in trained_parameters:
        if p.dtype not in (torch.float32, torch.float64) or p.dtype != trained_parameters[0][1].dtype:
            raise contract_error(
                f"the parameter {parameter_name!r}", "a float32 tensor, or float64 as all other parameters", p
            )


def _compute_checked_logits(network: nn.Module, federation: Federation) -> Tensor:
    """Return the logits of `network` for two samples of `federation`, [2, ..., C], and check their shape.

    Raises `ComponentError` for other results, and if `network` changes its inputs.
    """
    test_samples, network_mode = federation.server_test, "train" if network.training else "eval"
    x = _copy_two_samples(test_samples.x)
    inputs_copy = x.clone()
    logits: Tensor = network(x)
    if not torch.equal(x, inputs_copy):
        raise ComponentError(
            f"forward in {network_mode} mode must not change its inputs in place: write `x = x - 0.5` instead of `x -= "
            "0.5`"
        )
    if isinstance(logits, list | tuple | dict):
        output_names = ", ".join(map(str, logits if isinstance(logits, dict) else range(len(logits))))
        raise ComponentError(
            f"forward in {network_mode} mode must return a tensor of logits, got a {type(logits).__name__} with "
            f"{output_names}: model=module selects one of them by model.head"
        )
    check_tensor(
        f"the logits in {network_mode} mode", logits, (*_copy_two_samples(test_samples.y).shape, federation.n_classes)
    )
    return logits


def check_objective_results(objective: Objective, logits: Tensor, federation: Federation) -> None:
    """Check the results of an objective on two samples.

    Args:
        objective: the objective.
        logits: logits of these samples, with a gradient.
        federation: data of the run, with the labels.

    Raises:
        ComponentError: results have a wrong type, shape or no gradient, or the objective changes logits or labels.
    """
    y = _copy_two_samples(federation.server_test.y)
    ref_probs = logits.detach().softmax(-1) if objective.uses_reference else None
    logit_and_label_copies = logits.detach().clone(), y.clone()
    with _with_fixed_generators():
        objective_result: object = adapt_objective(federation.targets, objective).per_sample(logits, y, ref_probs)
        if not isinstance(objective_result, tuple) or len(objective_result) != 2:
            raise contract_error("the result of per_sample", "a pair (objective, cross-entropy)", objective_result)
        for result_name, result_tensor in zip(("objective", "cross-entropy"), objective_result, strict=True):
            check_tensor(f"the {result_name} of per_sample", result_tensor, (2,))
        mini_batch_loss = objective.transform_mean(objective_result[0].mean())
    check_tensor("the result of transform_mean", mini_batch_loss, ())
    if not (torch.equal(logits.detach(), logit_and_label_copies[0]) and torch.equal(y, logit_and_label_copies[1])):
        raise ComponentError("per_sample must not change logits and labels in place: change copies of them")
    if not mini_batch_loss.requires_grad:
        raise ComponentError(
            "per_sample and transform_mean must keep the gradient to the logits, got detached values: remove detach()"
        )


def _copy_two_samples(samples: Tensor) -> Tensor:
    """Return copies of the first two rows of `samples`, or twice the same row if there is only one."""
    return samples[[0, min(1, len(samples) - 1)]].clone()


@contextmanager
def _with_fixed_generators() -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch in the `with` block, and restore them at its end."""
    generator_states = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with seeded_torch(0, "probe"):
            yield
    finally:
        random.setstate(generator_states[0])
        np.random.set_state(generator_states[1])  # noqa: NPY002
