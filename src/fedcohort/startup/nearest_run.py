"""Describe the run that a resume may have meant: the one whose options differ least from those that were typed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedcohort.record.folder import config_hash
from fedcohort.roles import Identity, select_options
from fedcohort.startup.options import spell

MOST_RUNS = 50  # the newest ones: each is a file of 200 lines to read
MOST_DIFFERENCES = 4  # in the message
TARGET = "_target_"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where there is libyaml
IDENTITY = (Identity.HASH, Identity.SEED)


def describe(runs: Path, new: Path, config: Mapping[str, Any]) -> str:
    """Return `the nearest run, <folder>, differs in client.lr=0.1 (here 0.2)`; "" where there is no other run.

    Args:
        runs: the folder of all runs.
        new: the folder that was made now.
        config: composed of what was typed.
    """
    here = select_options(config, *IDENTITY)
    paths = [path for path in runs.glob("*/config.yaml") if path.parent != new]
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:MOST_RUNS]
    there = {path.parent: options for path in newest if (options := _read_options(path)) is not None}
    if not there:
        return ""
    names_by_run = {folder: _list_differing(options, here) for folder, options in there.items()}
    folder, names = min(names_by_run.items(), key=lambda item: len(item[1]))
    differences = [
        f"{name.removesuffix(TARGET).removesuffix('.')}={_spell(name, there[folder])} (here {_spell(name, here)})"
        for name in names[:MOST_DIFFERENCES]
    ]
    more = f" and {len(names) - MOST_DIFFERENCES} more" if len(names) > MOST_DIFFERENCES else ""
    how = f"differs in {', '.join(differences)}{more}"
    if not names and f"-{config_hash(config)}-s" in folder.name:
        how = "has more rounds, or other callbacks of Lightning's"
    elif not names:
        how = "is of a version of fedcohort that named runs otherwise"
    return f"the nearest run, {folder}, {how}"


def _read_options(path: Path) -> dict[str, Any] | None:
    """Return the options of a run that make it another run; None where its config can't be read."""
    try:
        config = yaml.load(path.read_text(), LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return select_options({str(k): v for k, v in config.items()}, *IDENTITY) if isinstance(config, dict) else None


def _list_differing(other: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that differ, sorted; without those of a component that is another one."""
    names = sorted(name for name in other.keys() | here.keys() if other.get(name) != here.get(name))
    components = tuple(name.removesuffix(TARGET) for name in names if name.endswith(TARGET))
    return [name for name in names if name.endswith(TARGET) or not name.startswith(components)]


def _spell(name: str, options: Mapping[str, Any]) -> str:
    """Return the option's value as it is typed: for a class of fedcohort's the choice behind which it is."""
    value = options.get(name)
    parts = str(value).split(".")
    return parts[-2] if name.endswith(TARGET) and parts[0] == "fedcohort" and len(parts) > 2 else spell(value)
