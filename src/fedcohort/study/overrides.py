"""Overrides, typed as `name=value` behind `python train.py`: the options of a run in a study."""

from collections.abc import Iterable

Overrides = tuple[str, ...]
CLOCK = "until.virtual_s"  # option that ends runs by the virtual clock
QUIET = (  # no figures, no tracker and no evaluation of all clients
    *("logger=none", "callback.figures=null", "callback.summary=null", "callback.progress=null"),
    *("eval.clients_every=0", "checkpoint.every_s=30"),
)


def option_of(override: str) -> str:
    """Return the option that an override sets: `label_noise.a` of `+label_noise.a=30`."""
    return override.lstrip("+~").partition("=")[0]


def merge(*lists: Iterable[str]) -> Overrides:
    """Join lists of overrides; of several overrides of one option, keep the last."""
    merged: dict[str, str] = {}
    for override in (override for overrides in lists for override in overrides):
        merged.pop(option_of(override), None)
        merged[option_of(override)] = override
    return tuple(merged.values())


def clock_of(overrides: Iterable[str]) -> float | None:
    """Return the virtual seconds at which a run with these overrides ends; None if no clock ends it."""
    values = [override.partition("=")[2] for override in overrides if override.lstrip("+").startswith(f"{CLOCK}=")]
    return float(values[-1]) if values and values[-1] != "null" else None
