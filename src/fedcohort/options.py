"""The options that belong to no part (configs/train.yaml, engine and trainer), with their ranges."""

import difflib
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError

Check = Callable[[str, Any], None]


def integer(interval: str, *, optional: bool = False) -> Check:
    return partial(ranges.integer, interval=interval, optional=optional)


def number(interval: str) -> Check:
    return partial(ranges.number, interval=interval)


def choice(*words: str) -> Check:
    return lambda option, value: ranges.choice(option, value, *words)


def name(option: str, value: Any) -> None:
    """Check the first part of the run folder's name."""
    if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value)):
        raise ranges.refuse(option, "letters, digits, '.', '_' and '-', as in a file's name, or null", value)


def processes(option: str, value: Any) -> None:
    """Check a number of processes, or "auto"."""
    if value != "auto":
        try:
            ranges.integer(option, value, "[1, inf)")
        except OptionError as error:
            raise ranges.refuse(option, "an integer in [1, inf) or auto", value) from error


def folder(option: str, value: Any) -> None:
    """Check that a folder can be written, or made. A file without a name is tried, and gone at once."""
    ranges.text(option, value)
    there = Path(value).absolute()
    try:
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OptionError(f"{option} must be a folder that can be written, got {value!r} ({error.strerror})") from error


CHECKS: Mapping[str, Check] = {
    "name": name,
    "seed": integer("[0, inf)"),
    "data_seed": integer("[0, inf)", optional=True),
    "clients": integer("[1, inf)", optional=True),
    "cohort": integer("[1, inf)"),
    "rounds": integer("[1, inf)"),
    "resume": ranges.flag,
    "split.server_val": number("(0, 0.5]"),
    "split.client_val": number("[0, 0.5]"),
    "split.limit": integer("[1, inf)", optional=True),
    "eval.every": integer("[1, inf)"),
    "eval.clients_every": integer("[0, inf)"),
    "checkpoint.every": integer("[1, inf)"),
    "checkpoint.every_s": number("[0, inf)"),
    "update_limit": number("(0, inf)"),
    "client_store.limit_gb": number("[0, inf)"),
    "paths.logs": folder,
    "engine.kind": choice("auto", "sequential", "vectorised", "debug"),
    "engine.slices": integer("[1, 100000]"),
    "engine.bn_var": choice("plain", "moments"),
    "engine.closed_form": ranges.flag,
    "engine.channels_last": choice("auto", "yes", "no"),
    "engine.chunk": integer("[1, inf)"),
    "engine.precision": choice("float32", "bf16"),
    "trainer.accelerator": choice("cpu", "gpu"),
    "trainer.devices": processes,
    "trainer.num_nodes": integer("[1, inf)"),
    "trainer.threads": integer("[1, inf)"),
}


def listed(known: Collection[str]) -> str:
    """The options that there are instead."""
    return f"its options are {', '.join(known)}" if known else "it has none"


def unknown(where: str, option: str, known: Collection[str]) -> OptionError:
    """The error for an option that `where` hasn't got; where: a node's path or group=word, "" for the top level."""
    if where:
        return OptionError(f"{where} has no option {option!r}; {listed(known)}")
    near = difflib.get_close_matches(option, sorted(known), 1)
    guess = f"; did you mean {near[0]}?" if near else ""
    return OptionError(f"there is no option {option!r}; there are {', '.join(sorted(known))}{guess}")


def check(config: Mapping[str, Any]) -> None:
    """Every one of them is there and in its range, and none beside it. Raises `OptionError`."""
    for node in dict.fromkeys(option.split(".")[0] for option in CHECKS if "." in option):
        known = [option.split(".")[1] for option in CHECKS if option.startswith(f"{node}.")]
        found = config.get(node)
        if not isinstance(found, Mapping):
            raise ranges.refuse(node, f"set option by option ({', '.join(f'{node}.{name}' for name in known)})", found)
        for option in found:
            if option not in known:
                raise unknown(node, option, known)
    for option, allowed in CHECKS.items():
        node, _, last = option.rpartition(".")
        holder = config[node] if node else config
        if last not in holder:
            raise OptionError(f"{option} is missing: leave out ~{option}")
        allowed(option, holder[last])
