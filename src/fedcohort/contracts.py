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
# by the letters of numpy's dtype kinds
DTYPE_KIND_NAMES = {"f": "a float", "i": "an integer", "b": "a bool", "if": "a numeric"}
# old names of arguments of records, for one release
NEW_NAMES_OF_ARGUMENTS = {"parts": "score_terms", "down": "down_s", "infer": "infer_s", "unit": "unit_s", "up": "up_s"}
MAX_VALUE_CHARACTERS = 60  # of a value in a message


def contract_error(value_name: str, expected_text: str, value: object) -> ComponentError:
    """Return the error that a component returned `value` as `value_name`, which must be `expected_text`."""
    return ComponentError(f"{value_name} must be {expected_text}, got {describe_value(value)}")


def describe_value(value: object) -> str:
    """Return a short description of `value`: type, shape and range of an array or tensor, else its printed form."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        value_text = repr(value)
        if len(value_text) > MAX_VALUE_CHARACTERS:
            value_text = value_text[:MAX_VALUE_CHARACTERS] + "..."
        return f"{value_text} ({type(value).__name__})"
    type_name = "array" if isinstance(value, np.ndarray) else type(value).__name__
    array_description = f"{str(dtype).removeprefix('torch.')} {type_name} {list(shape)}"
    if isinstance(value, np.ndarray) and value.size and dtype.kind in "iuf":
        array_description += f" with values from {value.min():g} to {value.max():g}"
    return array_description


def check_type(value_name: str, value: object, required_type: type[T]) -> T:
    """Return `value`, called `value_name` in messages; raise `ComponentError` unless it is of `required_type`."""
    if not isinstance(value, required_type):
        raise contract_error(value_name, f"a {required_type.__name__}", value)
    return value


def check_array(
    value_name: str,
    value: T,
    required_shape: tuple[int, ...],
    dtype_kinds: str,
    min_value: float = -math.inf,
    max_value: float = math.inf,
    *,
    allow_nan: bool = False,
) -> T:
    """Return `value`; raise `ComponentError` unless it is a numpy array of the required shape, type and range.

    Args:
        value_name: name of the value in the message.
        value: the value that the component returned.
        required_shape: the required shape.
        dtype_kinds: the letters of the allowed dtype kinds, a key of `DTYPE_KIND_NAMES`.
        min_value: the least allowed value.
        max_value: the greatest allowed value.
        allow_nan: whether NaN and infinite values are allowed.
    """
    is_valid = isinstance(value, np.ndarray) and value.shape == required_shape and value.dtype.kind in dtype_kinds
    if is_valid and isinstance(value, np.ndarray) and dtype_kinds != "b" and value.size:
        is_valid = bool(
            not ((value < min_value) | (value > max_value)).any()
            if allow_nan
            else value.min() >= min_value and value.max() <= max_value and np.isfinite(value).all()
        )
    if not is_valid:
        interval_text = "" if math.isinf(min_value) and math.isinf(max_value) else f" in [{min_value:g}, {max_value:g}]"
        finite_text = "" if allow_nan or "f" not in dtype_kinds else " of finite numbers"
        raise contract_error(
            value_name,
            f"{DTYPE_KIND_NAMES[dtype_kinds]} array {list(required_shape)}{finite_text}{interval_text}",
            value,
        )
    return value


def check_ids(value_name: str, value: T, n_ids: int, min_length: int = 0) -> T:
    """Return `value`; raise `ComponentError` unless it is an integer array of sorted distinct ids in [0, n_ids).

    Args:
        value_name: name of the value in the message.
        value: the value that the component returned.
        n_ids: number of possible ids.
        min_length: least number of ids.
    """
    is_valid = False
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind == "i" and len(value) >= min_length:
        is_in_range = not len(value) or (value[0] >= 0 and value[-1] < n_ids)
        is_valid = bool(is_in_range and (value[1:] > value[:-1]).all())
    if not is_valid:
        minimum_text = f", at least {min_length}" if min_length else ""
        raise contract_error(
            value_name, f"an integer array of sorted distinct numbers in [0, {n_ids - 1}]{minimum_text}", value
        )
    return value


def check_number(
    value_name: str,
    value: object,
    min_value: float = -math.inf,
    *,
    allow_infinite: bool = False,
    exclude_min: bool = False,
    allow_nan: bool = False,
) -> float:
    """Return `value` as a float; raise `ComponentError` unless it is a number in the required range.

    Args:
        value_name: name of the value in the message.
        value: the value that the component returned.
        min_value: the least allowed value.
        allow_infinite: whether infinity is allowed.
        exclude_min: whether `min_value` itself is rejected.
        allow_nan: whether all numbers are allowed, also NaN, infinity and those below `min_value`.
    """
    is_valid = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if is_valid and not allow_nan:
        checked_number = float(value)  # type: ignore[arg-type]  # mypy does not carry the check above over
        is_above_min = checked_number > min_value if exclude_min else checked_number >= min_value
        is_valid = is_above_min and (allow_infinite or math.isfinite(checked_number))
    if not is_valid:
        minimum_text = "" if math.isinf(min_value) else f" {'above' if exclude_min else 'of at least'} {min_value:g}"
        finite_text = "" if allow_infinite or allow_nan else "finite "
        raise contract_error(value_name, f"a {finite_text}number{minimum_text}", value)
    return float(value)  # type: ignore[arg-type]


def check_integer(value_name: str, value: T, min_value: int) -> T:
    """Return `value`, called `value_name`; raise `ComponentError` unless it is an integer of at least `min_value`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < min_value:
        raise contract_error(value_name, f"an integer of at least {min_value}", value)
    return value


def check_numbers_by_name(value_name: str, value: object) -> None:
    """Raise `ComponentError` unless `value`, called `value_name` in messages, maps texts to numbers, NaN included."""
    for number_name, number in check_type(value_name, value, Mapping).items():  # type: ignore[type-abstract]
        if not isinstance(number_name, str):
            raise contract_error(f"a key of {value_name}", "a text", number_name)
        check_number(f"{value_name}[{number_name!r}]", number, allow_nan=True)


def check_tensor(value_name: str, value: T, required_shape: tuple[int, ...]) -> T:
    """Return `value`, called `value_name`; raise `ComponentError` unless it is a tensor of `required_shape`.

    Its numbers must be floating-point numbers; NaN passes.
    """
    import torch  # noqa: PLC0415 - options are checked before torch is imported

    if not isinstance(value, torch.Tensor) or tuple(value.shape) != required_shape or not value.is_floating_point():
        raise contract_error(value_name, f"a tensor {list(required_shape)} of floating-point numbers", value)
    return value


def check_vectors_by_name(value_name: str, value: object, vector_length: int | None = None) -> None:
    """Raise `ComponentError` unless `value`, called `value_name`, is a mapping to float vectors of `vector_length`.

    None as `vector_length` allows any length. The keys are not checked.
    """
    values_by_name: Mapping[Any, Tensor] = check_type(value_name, value, Mapping)  # type: ignore[type-abstract]
    for vector_name, vector in values_by_name.items():
        required_shape = getattr(vector, "shape", (0,))[:1] if vector_length is None else (vector_length,)
        check_tensor(f"{value_name}[{vector_name!r}]", vector, tuple(required_shape))


def check_result_and_state(
    result_pair: object, required_type: type[T], previous_state: object, *, allow_none: bool = False
) -> tuple[T | None, Any]:
    """Return result and next state from the pair that a component returned; raise `ComponentError` for another value.

    Args:
        result_pair: the pair that the component returned.
        required_type: the required type of the result.
        previous_state: the state before the call, whose type the next state must have.
        allow_none: whether the result may be None.
    """
    if not isinstance(result_pair, tuple) or len(result_pair) != 2:
        raise contract_error("the result", f"a pair ({required_type.__name__}, state)", result_pair)
    component_result, next_state = result_pair
    if not (allow_none and component_result is None):
        check_type("the first item of the result", component_result, required_type)
    return component_result, check_state_type(next_state, previous_state)


def check_state_type(next_state: object, previous_state: object) -> object:
    """Return `next_state`; raise `ComponentError` unless it has the type of `previous_state`."""
    if type(next_state) is not type(previous_state):
        raise contract_error(
            "the state", f"a {type(previous_state).__name__}, the type of the previous state", next_state
        )
    return next_state


def describe_exception(error: BaseException, module_name: str) -> str:
    """Return `error` in one line, with the innermost line of code in `module_name`, the component's module."""
    error_text = " ".join(str(error).split("\n")[:2]).strip()
    for old_argument, new_argument in NEW_NAMES_OF_ARGUMENTS.items():
        if f"unexpected keyword argument '{old_argument}'" in error_text:
            error_text += f"; {old_argument} is called {new_argument} now"
    code_location = find_error_line(error.__traceback__, module_name)
    return (
        f"{type(error).__name__}{f': {error_text}' if error_text else ''}"
        f"{f' ({code_location})' if code_location else ''}"
    )


def find_error_line(traceback_start: TracebackType | None, module_name: str) -> str:
    """Return file, line and function of the innermost frame in `module_name`; "" if there is none.

    `traceback_start` is the traceback of an exception.
    """
    code_location = ""
    for stack_frame, line_number in traceback.walk_tb(traceback_start):
        if stack_frame.f_globals.get("__name__") == module_name:
            code_location = f"{stack_frame.f_code.co_filename}, line {line_number}, in {stack_frame.f_code.co_name}"
    return code_location


def check_signal_answers(signal_name: str, signal_answers: object, n_clients: int) -> np.ndarray:
    """Return the values of a signal as an array: a number, or a row of d numbers, per client, [n_clients(, d)].

    Args:
        signal_name: name of the signal, for messages.
        signal_answers: what the function of the signal returned.
        n_clients: required number of clients.

    Raises:
        ComponentError: the values have another shape, or are no numbers.
    """
    answer_shape = (n_clients, *getattr(signal_answers, "shape", ())[1:2])
    answers_name = f"the signal {signal_name!r}: the result"
    return np.asarray(check_array(answers_name, signal_answers, answer_shape, "if", allow_nan=True))
