"""Write keyword arguments of Python as the options that are typed on the command line: `agg={"mu": 0.1}` -> agg.mu=0.1.

A dict under the name of a group or of a node (`client`, `until`) sets its options one by one. A dict under a dotted
name, such as "model.args", is one value.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from fedcohort.errors import OptionError
from fedcohort.ranges import format_option_value

PLAIN_TEXT_PATTERN = re.compile(r"[A-Za-z_/.][\w./@+%-]*", re.ASCII)  # texts that Hydra reads as texts without quotes
YAML_RESERVED_WORDS = {"null", "true", "false", "nan", "inf"}
ALLOWED_TYPES_TEXT = "a number, a text, True, False, None, a path, or a list or dict of these"


def list_overrides(option_values: Mapping[str, object], *, is_sweep: bool = False) -> list[str]:
    """Return the overrides for keyword arguments, in their order.

    Args:
        option_values: values by the name of the option or group.
        is_sweep: whether a list, a range or a text with commas holds several values of an option, as in a sweep.

    Raises:
        OptionError: a value can't be written as an override.
    """
    overrides = []
    for name, value in option_values.items():
        if name == "model" and (callable(value) or _is_torch_network(value)):
            overrides += ["model=module", f"model.path={_find_import_path(value)}"]
            continue
        has_several_values = isinstance(value, list | tuple | range) or (isinstance(value, str) and "," in value)
        if has_several_values and not is_sweep and "." not in name:
            raise OptionError(f"{name}={value!r}: several values are a sweep, call fedcohort.sweep")
        value_by_option = (
            {f"{name}.{k}": option_value for k, option_value in value.items()}
            if isinstance(value, Mapping) and "." not in name
            else {name: value}
        )
        format_option = _format_sweep_values if is_sweep else format_override_value
        overrides += [f"{k}={format_option(k, option_value)}" for k, option_value in value_by_option.items()]
    return overrides


def _format_sweep_values(name: str, value: object) -> str:
    """Return the values of the option `name` in a sweep, with commas between them.

    `value` is a single value, an iterable of values, or a text with commas.
    """
    if isinstance(value, str) and "," in value:
        return value  # as typed on the command line
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        return format_override_value(name, value)
    if not (formatted_values := [format_override_value(name, list_element) for list_element in value]):
        raise OptionError(f"{name} has no values: a list of a sweep holds at least one, as in [0.1]")
    return ",".join(formatted_values)


def format_override_value(name: str, value: Any) -> str:  # noqa: ANN401 - what a user passes
    """Return `value` in the grammar of Hydra's overrides; `name` is the option's name for an `OptionError`."""
    if value is None or isinstance(value, int | float):
        return format_option_value(value)
    if isinstance(value, str | Path):
        option_text = str(value)
        needs_no_quotes = PLAIN_TEXT_PATTERN.fullmatch(option_text) and option_text.lower() not in YAML_RESERVED_WORDS
        return option_text if needs_no_quotes else str(QuotedString(option_text, Quote.single).with_quotes())
    if isinstance(value, Mapping):
        key_value_texts = (
            f"{format_override_value(name, k)}:{format_override_value(name, v)}" for k, v in value.items()
        )
        return "{" + ",".join(key_value_texts) + "}"
    if isinstance(value, list | tuple | range):
        return "[" + ",".join(format_override_value(name, v) for v in value) + "]"
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return format_override_value(name, value.tolist())
    raise OptionError(f"{name} must be {ALLOWED_TYPES_TEXT}, got {type(value).__name__}")


def _is_torch_network(value: object) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "forward")


def _find_import_path(network_factory: Any) -> str:  # noqa: ANN401 - a class, a function or what was passed instead
    """Return the dotted name by which another process imports a class or function that makes a network.

    Raises `OptionError` if `network_factory` has no such name.
    """
    name = getattr(network_factory, "__qualname__", "")
    if not name.isidentifier():
        network_class, advice_text = type(network_factory), "write a function at the top that returns it, and pass that"
        if _is_torch_network(network_factory) and not network_class.__module__.startswith("torch."):
            advice_text = f"pass model={network_class.__name__}"
        raise OptionError(
            "model must be the name of a choice, or a class or function at the top of a module, got "
            f"{name or f'a network of the class {network_class.__name__}'}. Each run has to make a new network with "
            f"the weights of its seed: {advice_text}"
        )
    return f"{network_factory.__module__}.{name}"
