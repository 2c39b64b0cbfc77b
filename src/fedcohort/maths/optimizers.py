"""Optimizers of `torch.optim` that do not import torch's compiler."""

import inspect
from functools import cache
from typing import Any, TypeVar

import torch

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)


def uncompiled(optimizer: type[Optimizer]) -> type[Optimizer]:
    """Return an optimizer class with equal steps that does not import `torch._dynamo`, which takes 1.7 s.

    torch wraps methods of its optimizers to exclude them from compilation. The first call of a wrapper imports the
    compiler, although nothing is compiled here (torch 2.13.0).
    """
    subclass_of: Any = _subclass  # mypy takes a class that is a type variable for unhashable
    subclass: type[Optimizer] = subclass_of(optimizer)
    return subclass


@cache
def _subclass(optimizer: type) -> Any:  # noqa: ANN401 - a class of the same type
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in ("add_param_group", "zero_grad", "step")}
    return type(optimizer.__name__, (optimizer,), {**methods, "step": torch.no_grad()(methods["step"])})
