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

PlainData = Any  # None, numbers, strings, tensors, and lists and dictionaries of these
StateValue = Any  # a State, or a value in it


def pack_state(value: object) -> PlainData:
    """Return `value` as tensors, numbers, texts, lists and dictionaries with text keys, for a checkpoint.

    Raises:
        TypeError: the value holds an object of another type.
    """
    if isinstance(value, np.generic):  # before float and str: np.float64 is a float, and torch doesn't load it
        return value.item()
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return {"array": torch.from_numpy(np.array(value, order="C"))}  # a copy, as what is saved must not change
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"record": {f.name: pack_state(getattr(value, f.name)) for f in dataclasses.fields(value)}}
    if isinstance(value, tuple | list) and type(value) in (tuple, list):  # a named tuple would come back as a list
        return {type(value).__name__: [pack_state(sequence_item) for sequence_item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack_state(k), pack_state(v)] for k, v in value.items()]}
    raise TypeError(f"a State can't hold a {type(value).__name__}: {value!r:.80}; use arrays, numbers or texts")


def unpack_state(plain_data: PlainData, value_type_hint: object = Any) -> StateValue:
    """Return the value from which `pack_state` made `plain_data`.

    Args:
        plain_data: the result of `pack_state`.
        value_type_hint: type annotation of the value, which tells the classes of its dataclasses.

    Raises:
        CheckpointError: if the checkpoint has other fields than the class, or a record where the hint names no class.
    """
    if not isinstance(plain_data, dict):
        return plain_data
    ((container_type, container_items),) = plain_data.items()
    if container_type == "array":
        return container_items.numpy().copy()
    if container_type == "record":
        return _unpack_record(container_items, value_type_hint)
    if container_type == "dict":
        _, value_type = (*_list_type_arguments(value_type_hint), Any, Any)[:2]
        return {unpack_state(k): unpack_state(v, value_type) for k, v in container_items}
    item_types = tuple(h for h in _list_type_arguments(value_type_hint) if h is not Ellipsis)
    if len(item_types) != len(container_items):
        item_types = (item_types[:1] or (Any,)) * len(container_items)
    unpacked_items = [unpack_state(x, h) for x, h in zip(container_items, item_types, strict=True)]
    return tuple(unpacked_items) if container_type == "tuple" else unpacked_items


def _unpack_record(packed_fields: dict[str, PlainData], value_type_hint: object) -> StateValue:
    record_classes = [c for c in _union_members(value_type_hint) if isinstance(c, type) and dataclasses.is_dataclass(c)]
    if not record_classes:
        raise CheckpointError(
            f"the checkpoint holds a record where this version of fedcohort has {value_type_hint}: start a new run"
        )
    fields_by_class = {c: {f.name for f in dataclasses.fields(c)} for c in record_classes}
    record_class: Any = next((c for c in record_classes if fields_by_class[c] == set(packed_fields)), record_classes[0])
    if fields_by_class[record_class] != set(packed_fields):
        raise CheckpointError(
            f"{record_class.__name__} has the fields {sorted(fields_by_class[record_class])}, the checkpoint "
            f"{sorted(packed_fields)}: another version of fedcohort wrote it; start a new run"
        )
    field_types = typing.get_type_hints(record_class)
    return record_class(**{k: unpack_state(v, field_types[k]) for k, v in packed_fields.items()})


def _list_type_arguments(value_type_hint: object) -> tuple[Any, ...]:
    """Return the type arguments of the first alternative of `value_type_hint` that has any.

    For `tuple[int, ...] | None` these are int and `...`.
    """
    return next((type_arguments for h in _union_members(value_type_hint) if (type_arguments := typing.get_args(h))), ())


def _union_members(value_type_hint: object) -> tuple[Any, ...]:
    if typing.get_origin(value_type_hint) in (typing.Union, types.UnionType):
        return typing.get_args(value_type_hint)
    return (value_type_hint,)
