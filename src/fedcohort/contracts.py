"""Checks of the values that a component returns: type, shape, kind of numbers and range.

Each check raises `ComponentError("<what> must be <expected>, got <value>")`. `round/guard.py` puts the name of the
component and of its method in front.
"""

import math
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fedcohort.errors import ComponentError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
KINDS = {"f": "a float", "i": "an integer", "b": "a bool", "if": "a numeric"}  # by the letters of numpy's dtype kinds
RENAMED_ARGUMENTS = {"parts": "score_terms"}  # old names of arguments of records, for one release
MAX_CHARACTERS = 60  # of a value in a message


def contract_error(what: str, expected: str, value: object) -> ComponentError:
    """Return the error for a value that a component returned; expected: text that completes "must be"."""
    return ComponentError(f"{what} must be {expected}, got {describe_value(value)}")


def describe_value(value: object) -> str:
    """Describe a value in a few words: an array or a tensor by type, shape and range, anything else as it prints."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        text = repr(value)
        return f"{text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + '...'} ({type(value).__name__})"
    name = "array" if isinstance(value, np.ndarray) else type(value).__name__
    text = f"{str(dtype).removeprefix('torch.')} {name} {list(shape)}"
    if isinstance(value, np.ndarray) and value.size and dtype.kind in "iuf":
        text += f" with values from {value.min():g} to {value.max():g}"
    return text


def check_type(what: str, value: object, kind: type[T]) -> T:
    """Return the value that a component returned, which must be an instance of `kind`."""
    if not isinstance(value, kind):
        raise contract_error(what, f"a {kind.__name__}", value)
    return value


def check_array(
    what: str,
    value: object,
    shape: tuple[int, ...],
    kinds: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    nan: bool = False,
) -> None:
    """Check that a component returned a numpy array of the required shape, type and range.

    Args:
        what: the name of the value, for the message.
        value: the value that the component returned.
        shape: the required shape.
        kinds: the letters of the allowed dtype kinds, a key of `KINDS`.
        low: the least allowed value.
        high: the greatest allowed value.
        nan: whether NaN and infinite values are allowed.
    """
    is_valid = isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind in kinds
    if is_valid and isinstance(value, np.ndarray) and kinds != "b" and value.size:
        if nan:
            is_valid = not ((value < low) | (value > high)).any()
        else:
            is_valid = bool(value.min() >= low and value.max() <= high and np.isfinite(value).all())
    if not is_valid:
        bounds = "" if math.isinf(low) and math.isinf(high) else f" in [{low:g}, {high:g}]"
        finite = "" if nan or "f" not in kinds else " of finite numbers"
        raise contract_error(what, f"{KINDS[kinds]} array {list(shape)}{finite}{bounds}", value)


def check_ids(what: str, value: object, n: int, min_length: int = 0) -> None:
    """Check an array of ids: sorted distinct integers in [0, n), `min_length` of them or more."""
    is_valid = (
        isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i" and len(value) >= min_length
    )
    if is_valid and isinstance(value, np.ndarray) and len(value):
        is_valid = bool(value[0] >= 0 and value[-1] < n and (value[1:] > value[:-1]).all())
    if not is_valid:
        minimum = f", at least {min_length}" if min_length else ""
        raise contract_error(what, f"an integer array of sorted distinct numbers in [0, {n - 1}]{minimum}", value)


def check_number(
    what: str, value: object, low: float = -math.inf, *, infinite: bool = False, above: bool = False, nan: bool = False
) -> float:
    """Check that a component returned a number, and return it as a float.

    Args:
        what: the name of the value, for the message.
        value: the value that the component returned.
        low: the least allowed value.
        infinite: whether infinity is allowed.
        above: whether `low` itself is rejected.
        nan: whether NaN and infinite values are allowed.
    """
    is_valid = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if is_valid and not nan:
        x = float(value)  # type: ignore[arg-type]  # mypy does not carry the check above over
        is_valid = (x > low if above else x >= low) and (infinite or math.isfinite(x))
    if not is_valid:
        least = "" if math.isinf(low) else f" {'above' if above else 'of at least'} {low:g}"
        raise contract_error(what, f"a {'' if infinite or nan else 'finite '}number{least}", value)
    return float(value)  # type: ignore[arg-type]


def check_integer(what: str, value: object, low: int) -> None:
    """Check that a component returned an integer of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise contract_error(what, f"an integer of at least {low}", value)


def check_numbers_by_name(what: str, value: object) -> None:
    """Check that a component returned a mapping of names to numbers; NaN is allowed."""
    for name, item in check_type(what, value, Mapping).items():  # type: ignore[type-abstract]
        if not isinstance(name, str):
            raise contract_error(f"a key of {what}", "a text", name)
        check_number(f"{what}[{name!r}]", item, nan=True)


def check_tensor(what: str, value: object, shape: tuple[int, ...]) -> None:
    """Check a torch tensor of floating-point numbers. NaN is allowed: the server drops such an update."""
    import torch  # noqa: PLC0415 - options are checked before torch is imported

    if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape or not value.is_floating_point():
        raise contract_error(what, f"a tensor {list(shape)} of floating-point numbers", value)


def check_vectors_by_name(what: str, value: object, size: int | None = None) -> None:
    """Check a mapping of names to vectors; size: their length, None for any."""
    items: Mapping[Any, Tensor] = check_type(what, value, Mapping)  # type: ignore[type-abstract]
    for name, item in items.items():
        length = getattr(item, "shape", (0,))[:1] if size is None else (size,)
        check_tensor(f"{what}[{name!r}]", item, tuple(length))


def check_result_and_state(
    value: object, kind: type[T], state: object, *, optional: bool = False
) -> tuple[T | None, Any]:
    """Check that a component returned a pair (item, next state), and return both.

    Args:
        value: the result.
        kind: the required type of the item.
        state: the previous state, whose type the next one must have.
        optional: whether the item may be None.
    """
    if not isinstance(value, tuple) or len(value) != 2:
        raise contract_error("the result", f"a pair ({kind.__name__}, state)", value)
    first = None if optional and value[0] is None else check_type("the first item of the result", value[0], kind)
    return first, check_state_type(value[1], state)


def check_state_type(value: object, state: object) -> object:
    """Check that the next state has the type of the previous one, and return it."""
    if type(value) is not type(state):
        raise contract_error("the state", f"a {type(state).__name__}, the type of the previous state", value)
    return value


def describe_exception(error: BaseException, module: str) -> str:
    """Describe an exception in one line; module: of the component, whose innermost frame is named."""
    text = " ".join(str(error).split("\n")[:2]).strip()
    for old, new in RENAMED_ARGUMENTS.items():
        if f"unexpected keyword argument '{old}'" in text:
            text += f"; {old} is called {new} now"
    line = find_error_line(error.__traceback__, module)
    return f"{type(error).__name__}{f': {text}' if text else ''}{f' ({line})' if line else ''}"


def find_error_line(trace: TracebackType | None, module: str) -> str:
    """Return file, line and function of the innermost frame of `module`, or an empty text."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(trace) if frame.f_globals.get("__name__") == module]
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}"
