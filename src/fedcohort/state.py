"""Conversion of a State to data that `torch.load(weights_only=True)` accepts, and back.

A State is a (frozen or not) dataclass of None, numbers, strings, numpy arrays, tensors, tuples, lists, dictionaries
and further dataclasses. The files of methods contain no serialisation code.
"""

import dataclasses
import types
import typing
from typing import Any

import numpy as np
import torch

from fedcohort.errors import CheckpointError

Packed = Any  # None, numbers, strings, tensors, and lists and dictionaries of these
Unpacked = Any  # a State, or a value in it


def pack(value: object) -> Packed:
    """Return a value as tensors, numbers, strings, lists and dictionaries with string keys, for a checkpoint."""
    if isinstance(value, np.generic):  # before float and str: np.float64 is a float, and torch doesn't load it
        return value.item()
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return {"array": torch.from_numpy(np.array(value, order="C"))}  # a copy, as what is saved must not change
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"record": {f.name: pack(getattr(value, f.name)) for f in dataclasses.fields(value)}}
    if isinstance(value, tuple | list) and type(value) in (tuple, list):  # a named tuple would come back as a list
        return {type(value).__name__: [pack(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(k), pack(v)] for k, v in value.items()]}
    raise TypeError(f"a State can't hold a {type(value).__name__}: {value!r:.80}")


def unpack(payload: Packed, like: object = Any) -> Unpacked:
    """Return the value from which `pack` made the payload.

    Args:
        payload: the result of `pack`.
        like: the type of the value, from which the classes of its records are known.

    Raises:
        CheckpointError: if the payload has other fields than the class.
    """
    if not isinstance(payload, dict):
        return payload
    ((kind, body),) = payload.items()
    if kind == "array":
        return body.numpy().copy()
    if kind == "record":
        return _unpack_record(body, like)
    if kind == "dict":
        _, value_type = (*_type_arguments(like), Any, Any)[:2]
        return {unpack(k): unpack(v, value_type) for k, v in body}
    inner_types = tuple(hint for hint in _type_arguments(like) if hint is not Ellipsis)
    item_types = inner_types if len(inner_types) == len(body) else (inner_types[:1] or (Any,)) * len(body)
    items = [unpack(item, hint) for item, hint in zip(body, item_types, strict=True)]
    return tuple(items) if kind == "tuple" else items


def _unpack_record(fields: dict[str, Packed], like: object) -> Unpacked:
    classes = [c for c in _union_members(like) if isinstance(c, type) and dataclasses.is_dataclass(c)]
    if not classes:
        raise CheckpointError(f"the checkpoint holds a record where this version expects {like}")
    names = {c: {f.name for f in dataclasses.fields(c)} for c in classes}
    cls: type[Any] = next((c for c in classes if names[c] == set(fields)), classes[0])
    if names[cls] != set(fields):
        raise CheckpointError(
            f"{cls.__name__} has the fields {sorted(names[cls])}, the checkpoint {sorted(fields)}: "
            "another version wrote it; start a new run"
        )
    field_types = typing.get_type_hints(cls)
    return cls(**{name: unpack(value, field_types[name]) for name, value in fields.items()})


def _type_arguments(like: object) -> tuple[Any, ...]:
    """Return the type arguments of the first alternative that has any: int and ... of `tuple[int, ...] | None`."""
    return next((arguments for hint in _union_members(like) if (arguments := typing.get_args(hint))), ())


def _union_members(like: object) -> tuple[Any, ...]:
    if typing.get_origin(like) in (typing.Union, types.UnionType):
        return typing.get_args(like)
    return (like,)
