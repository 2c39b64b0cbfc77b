"""The options that belong to no part (configs/train.yaml, engine and trainer), with their ranges."""

import re
import tempfile
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import IncompatibleConfig, OptionError
from fedcohort.host import cores, processor
from fedcohort.round.settings import Check, choice, integer, number, options

PER_CORE = 8  # processes, or threads of one: more than cores may be wanted, to see that results don't depend on them


def name(option: str, value: object) -> None:
    """Check the first part of the run folder's name."""
    if value is not None and not (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", value)):
        raise ranges.refuse(option, "letters, digits, '.', '_' and '-', as in a file's name, or null", value)


def per_core(option: str, value: object, *, auto: bool = False) -> None:
    """Check a number of processes or threads, or with `auto` that word; thousands of them would end the process."""
    if auto and value == "auto":
        return
    most, found = PER_CORE * cores.available(), cores.available()
    try:
        ranges.integer(option, value, f"[1, {most}]")
    except OptionError as error:
        words = f"an integer in [1, {most}]{' or auto' if auto else ''}"
        why = f"{PER_CORE} for each of the {found} cores that this process may use"
        raise ranges.refuse(option, f"{words} ({why})", value) from error


def one_pool(trainer: Mapping[str, Any]) -> None:
    """Check that processes have one thread each where they are forked: a pool of threads does not survive that."""
    devices = cores.available() if trainer["devices"] == "auto" else trainer["devices"]
    forked = trainer["accelerator"] == "cpu" and trainer["num_nodes"] == 1 and devices > 1
    if forked and trainer["threads"] > 1:
        allowed = f"1 where trainer.devices={trainer['devices']} forks {devices} processes on one machine"
        raise ranges.refuse("trainer.threads", allowed, trainer["threads"])


def precision(engine: Mapping[str, Any], accelerator: str) -> None:
    """Check that the processor has instructions for bf16 where it is to train in it, unless `engine.force` is true."""
    emulated = engine["precision"] == "bf16" and accelerator == "cpu" and processor.has_bf16() is False
    if emulated and not engine["force"]:
        allowed = "float32 on this processor, which lacks bf16 instructions and is some 8 times slower with bf16"
        raise ranges.refuse("engine.precision", f"{allowed} (engine.force=true overrides)", "bf16")


def resume(option: str, value: object) -> None:
    """Check whether, and how, a run goes on."""
    if not isinstance(value, bool) and value not in ("previous", "force"):
        raise ranges.refuse(option, "true, false, previous or force", value)


def objective_metric(option: str, value: object) -> None:
    """Check what a sweeper is told of a run."""
    allowed = ("server_val/acc", "server_val/loss")
    if value is not None and value not in allowed:
        reason = " (nothing may select on the test set)" if str(value).startswith(("test/", "clients/acc")) else ""
        raise OptionError(f"{option} must be one of {', '.join(allowed)}, or null, got {value!r}{reason}")


def folder(option: str, value: object) -> None:
    """Check that a folder can be written, or made. A file without a name is tried, and gone at once."""
    ranges.text(option, value)
    there = Path(str(value)).absolute()
    try:
        while not there.exists():
            there = there.parent
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OptionError(f"{option} must be a folder that can be written, got {value!r} ({error.strerror})") from error


CHECKS: Mapping[str, Check] = {  # those that the rounds read stand in `round/settings.py`
    **{option: check for _, option, check in options()},
    "name": name,
    "data_seed": integer("[0, inf)", optional=True),
    "clients": integer("[1, inf)", optional=True),
    "resume": resume,
    "objective_metric": objective_metric,
    "split.server_val": number("(0, 0.5]"),
    "split.client_val": number("[0, 0.5]"),
    "split.limit": integer("[1, inf)", optional=True),
    "checkpoint.every": integer("[1, inf)"),
    "checkpoint.every_s": number("[0, inf)"),
    "engine.force": ranges.flag,
    "sweep.report": ranges.flag,
    "sweep.skip_refused": ranges.flag,
    "paths.logs": folder,
    "trainer.accelerator": choice("cpu", "gpu"),
    "trainer.devices": partial(per_core, auto=True),
    "trainer.num_nodes": integer("[1, inf)"),
    "trainer.threads": per_core,
}


def spell(value: object) -> str:
    """Return the value as it is typed on the command line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def list_options(known: Collection[str]) -> str:
    """Say which options there are instead."""
    return f"its options are {', '.join(known)}" if known else "it has none"


def unknown(where: str, option: str, known: Collection[str]) -> OptionError:
    """Return the error for an option that `where` hasn't got.

    where: a node's path or group=word; "" for the top level.
    """
    near = ranges.closest(option, known)
    guess = f"; did you mean {near}?" if near else ""
    if where:
        return OptionError(f"{where} has no option {option!r}; {list_options(known)}{guess}")
    return OptionError(f"there is no option {option!r}; there are {', '.join(sorted(known))}{guess}")


def options_in(node: str) -> list[str]:
    """Return the options of a node that belong to no part: all of `engine`'s, `window_s` of `deadline`'s."""
    return [option.split(".")[1] for option in CHECKS if option.startswith(f"{node}.")]


def check(config: Mapping[str, Any]) -> None:
    """Check that every option is there and in its range, and none beside it. Raises `OptionError`."""
    for node in dict.fromkeys(option.split(".")[0] for option in CHECKS if "." in option):
        known = options_in(node)
        found = config.get(node)
        if not isinstance(found, Mapping):
            raise ranges.refuse(node, f"set option by option ({', '.join(f'{node}.{name}' for name in known)})", found)
        for option in found if "_target_" not in found else ():  # a part's own are its constructor's to know
            if option not in known:
                raise unknown(node, option, known)
    for option, allowed in CHECKS.items():
        node, _, last = option.rpartition(".")
        holder = config[node] if node else config
        if last not in holder:
            raise OptionError(f"{option} is missing: leave out ~{option}")
        allowed(option, holder[last])
    one_pool(config["trainer"])
    if config["clients"] is not None and config["cohort"] > config["clients"]:
        raise IncompatibleConfig(f"cohort={config['cohort']} exceeds clients={config['clients']}")
    precision(config["engine"], config["trainer"]["accelerator"])
