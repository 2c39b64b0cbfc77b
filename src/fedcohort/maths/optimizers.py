"""Optimizers of `torch.optim` that do not import torch's compiler."""

import inspect
from functools import cache
from typing import Any, TypeVar, cast

import torch

OptimizerType = TypeVar("OptimizerType", bound=torch.optim.Optimizer)


def uncompiled_optimizer(optimizer_class: type[OptimizerType]) -> type[OptimizerType]:
    """Return a subclass of `optimizer_class` with equal steps that saves the import of `torch._dynamo` (1.7 s).

    torch wraps methods of its optimizers to exclude them from compilation. The first call of a wrapper imports the
    compiler, although nothing is compiled here (torch 2.13.0).
    """
    make_subclass: Any = _make_uncompiled_subclass  # mypy takes a class that is a type variable for unhashable
    return cast(type[OptimizerType], make_subclass(optimizer_class))


@cache
def _make_uncompiled_subclass(optimizer_class: Any) -> Any:  # noqa: ANN401 - a class, and a class of the same type
    method_names = ("add_param_group", "zero_grad", "step")
    methods = {method_name: inspect.unwrap(getattr(optimizer_class, method_name)) for method_name in method_names}
    return type(optimizer_class.__name__, (optimizer_class,), {**methods, "step": torch.no_grad()(methods["step"])})
