"""Detect components that change their tensor arguments, by comparing them before and after each call."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch

from fedcohort.hook import Correction
from fedcohort.round.guard import add_result_checks
from fedcohort.startup import components
from fedcohort.training.local import LocalTrainer

MUST_CHANGE = {("correct", 0)}  # a hook changes the gradient in place


def tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value: in records, mappings and sequences as well."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (tensor for item in value.values() for tensor in tensors(item))
    elif isinstance(value, tuple | list):
        yield from (tensor for item in value for tensor in tensors(item))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (tensor for item in vars(value).values() for tensor in tensors(item))


def check_unchanged(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method that fails if it changes a tensor among its arguments."""

    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        handed = [t for i, arg in enumerate(args) if (name, i) not in MUST_CHANGE for t in tensors(arg)]
        before = [tensor.detach().clone() for tensor in handed]
        result = method(*args, **named)
        are_equal = [torch.equal(a.detach().nan_to_num(), b.nan_to_num()) for a, b in zip(handed, before, strict=True)]
        assert all(are_equal), f"{method.__qualname__} changes a tensor that it was handed"
        return result

    return call


class GuardedCorrection:
    """A hook's correction whose calls are checked."""

    def __init__(self, correction: Correction) -> None:
        self.correction = correction

    def __getattr__(self, name: str) -> Any:
        result = getattr(self.correction, name)
        return check_unchanged(result, name) if callable(result) else result


def guard_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the tensor arguments of every component method, in runs that are composed afterwards."""

    def guard_and_watch(part: Any, group: str, option: str, contract: type) -> Any:
        part = add_result_checks(part, group, option, contract)
        for name in dir(type(part)):
            if not name.startswith("_") and callable(method := getattr(part, name)) and name != "build":
                object.__setattr__(part, name, check_unchanged(method, name))
        return part

    def begin(self: LocalTrainer, task: Any, broadcast: Mapping[str, torch.Tensor]) -> list[Any]:
        corrections = started(self, task, broadcast)
        return [GuardedCorrection(correction) for correction in corrections]

    started = LocalTrainer.begin_client_hooks
    monkeypatch.setattr(LocalTrainer, "begin_client_hooks", begin)
    monkeypatch.setattr(components, "add_result_checks", guard_and_watch)
