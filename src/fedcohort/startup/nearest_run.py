"""The run that a resume might have meant: the one whose options differ in the fewest from those that were typed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedcohort.record.folder import config_hash
from fedcohort.roles import Identity, select_options

LOOKED_AT = 50  # of the newest runs: each is a file of 200 lines to read
SAID = 4  # differences
TARGET = "_target_"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where there is libyaml
IDENTITY = (Identity.HASH, Identity.SEED)


def describe(runs: Path, new: Path, config: Mapping[str, Any]) -> str:
    """`the nearest run, <folder>, differs in client.lr=0.1 (here 0.2)`; "" where there is no other run.

    Args:
        runs: the folder of all runs.
        new: the folder that was made now.
        config: what was typed, composed.
    """
    wanted = select_options(config, *IDENTITY)
    paths = [path for path in runs.glob("*/config.yaml") if path.parent != new]
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:LOOKED_AT]
    found = {path.parent: other for path in newest if (other := _read_options(path)) is not None}
    if not found:
        return ""
    differing = {folder: _differing(other, wanted) for folder, other in found.items()}
    folder = min(differing, key=lambda path: len(differing[path]))
    return f"the nearest run, {folder}, {_say(folder, found[folder], wanted, differing[folder], config)}"


def _read_options(path: Path) -> dict[str, Any] | None:
    """Read the options of a run that make it another run; None where its config can't be read."""
    try:
        config = yaml.load(path.read_text(), LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return (
        select_options({str(key): value for key, value in config.items()}, *IDENTITY)
        if isinstance(config, dict)
        else None
    )


def _differing(other: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the names of the options that differ, sorted.

    Where the word of a group is another, its options are no differences of their own.
    """
    names = sorted(name for name in other.keys() | wanted.keys() if other.get(name) != wanted.get(name))
    words = tuple(name.removesuffix(TARGET) for name in names if name.endswith(TARGET))
    return [name for name in names if name.endswith(TARGET) or not name.startswith(words)]


def _say(
    folder: Path, other: Mapping[str, Any], wanted: Mapping[str, Any], names: list[str], config: Mapping[str, Any]
) -> str:
    if not names:
        same = f"-{config_hash(config)}-s" in folder.name
        if same:
            return "has more rounds, or other callbacks of Lightning's"
        return "is of a version of fedcohort that named runs otherwise"
    differences = [f"{_spell(name, other.get(name))} (here {_value(name, wanted.get(name))})" for name in names[:SAID]]
    more = f" and {len(names) - SAID} more" if len(names) > SAID else ""
    return f"differs in {', '.join(differences)}{more}"


def _spell(name: str, value: object) -> str:
    """Spell an option as `client.lr=0.1`, or as `selector=random` for the class behind a word."""
    return f"{name.removesuffix(TARGET).removesuffix('.')}={_value(name, value)}"


def _value(name: str, value: object) -> object:
    """Return the value as it was typed; for a class of ours the word that it stands behind."""
    parts = str(value).split(".")
    if name.endswith(TARGET) and parts[0] == "fedcohort" and len(parts) > 2:
        return parts[-2]
    return "null" if value is None else value
