"""Detect components that change their tensor arguments, by comparing them before and after each call."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
import torch

from fedcohort.hook import Correction
from fedcohort.round.guard import add_result_checks
from fedcohort.startup import components
from fedcohort.training.local import LocalTrainer

IN_PLACE_ARGUMENTS = {("correct", 0)}  # a hook changes the gradient in place


@functools.cache
def _find_reader(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return a function that lists what a value of this class contains; None for a class of plain values."""
    if issubclass(kind, Mapping):
        return lambda value: value.values()
    if issubclass(kind, tuple | list):
        return iter
    return (lambda value: vars(value).values()) if dataclasses.is_dataclass(kind) else None


def tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value: in records, mappings and sequences as well."""
    if isinstance(value, torch.Tensor):
        yield value
    elif read_items := _find_reader(type(value)):  # type: ignore[arg-type]
        for item in read_items(value):
            yield from tensors(item)


def _same_values(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a, b) or torch.equal(a.nan_to_num(), b.nan_to_num())


@functools.cache
def _list_methods(kind: type) -> list[str]:
    """Return the public methods of a component's class that work on a run's data."""
    return [
        name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name)) and name != "build"
    ]


def check_unchanged(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method that fails if it changes a tensor among its arguments."""

    @functools.wraps(method)
    def call_and_compare(*args: Any, **kwargs: Any) -> Any:
        given_tensors = [t for i, arg in enumerate(args) if (name, i) not in IN_PLACE_ARGUMENTS for t in tensors(arg)]
        before = [tensor.detach().clone() for tensor in given_tensors]
        result = method(*args, **kwargs)
        are_equal = [_same_values(a.detach(), b) for a, b in zip(given_tensors, before, strict=True)]
        assert all(are_equal), f"{method.__qualname__} changes a tensor that it was handed"
        return result

    return call_and_compare


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
        for name in _list_methods(type(part)):  # type: ignore[arg-type]
            object.__setattr__(part, name, check_unchanged(getattr(part, name), name))
        return part

    def begin(self: LocalTrainer, task: Any, broadcast: Mapping[str, torch.Tensor]) -> list[Any]:
        corrections = begin_client_hooks(self, task, broadcast)
        return [GuardedCorrection(correction) for correction in corrections]

    begin_client_hooks = LocalTrainer.begin_client_hooks
    monkeypatch.setattr(LocalTrainer, "begin_client_hooks", begin)
    monkeypatch.setattr(components, "add_result_checks", guard_and_watch)
