"""Who watches a run: our observers, the callbacks of Lightning's that a user adds, the tracker, the status."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.record.observer import Observer
from fedcohort.record.status import RunStatus
from fedcohort.startup import components
from fedcohort.startup.command_line import is_inside
from fedcohort.startup.components import CALLBACK, Component
from fedcohort.startup.compose import Composed

FOLDERS = frozenset({"dirpath", "save_dir", "root_dir", "logs"})  # options of callbacks and trackers that name a folder


@dataclass(frozen=True)
class Watchers:
    """Who watches a run.

    Attributes:
        observers: in the order of configs/callback; then the tracker, which uploads what they wrote; the status last.
        callbacks: Lightning's own, which may end the run before its last round.
        ends_early: the configs of these callbacks, in an order of their own.
    """

    observers: Sequence[Observer]
    callbacks: Sequence[Any]
    ends_early: Sequence[Any]


def watchers_of(composition: Composed) -> Watchers:
    """Make the watchers that the config names. Raises `OptionError`."""
    nodes = {f"callback.{name}": node for name, node in composition.config["callback"].items() if node}
    _check_folders({**nodes, "logger": composition.config["logger"]}, composition.config["paths"]["logs"])
    found = {where: _build(where, node) for where, node in nodes.items()}
    theirs = {where: part for where, part in found.items() if not isinstance(part, Observer)}
    _check_monitors(theirs)
    tracker = components.make(composition, "logger")
    ends_early = _in_json(nodes[where] for where in theirs)
    ours = [part for part in found.values() if isinstance(part, Observer)]
    watching = [*ours, *([tracker] if tracker is not None else []), RunStatus(ends_early)]
    return Watchers(watching, list(theirs.values()), ends_early)


def _in_json(nodes: Iterable[Any]) -> list[Any]:
    """Return the nodes as they come back from a file, in an order of their own."""
    return [json.loads(text) for text in sorted(json.dumps(node, sort_keys=True, default=str) for node in nodes)]


def _build(where: str, node: object) -> Component:
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise ranges.refuse(where, "null, or a class in _target_ with its options", node)
    return components.build(node, where, where, CALLBACK)


def _check_folders(nodes: Mapping[str, object], logs: str) -> None:
    """Refuse a folder outside `logs` in the options of an observer, a callback or the tracker, by the names of these.

    A file's name may hold no folder. Raises `OptionError`.
    """
    for where, node in nodes.items():
        options = node if isinstance(node, Mapping) else {}
        for option in FOLDERS & options.keys():
            folder = options[option]
            if folder is not None and folder != logs and not is_inside(str(folder), logs):
                allowed = f"null, or a folder inside paths.logs={logs}, where all that a run writes stays"
                raise ranges.refuse(f"{where}.{option}", allowed, folder)
        name = options.get("filename")
        if name is not None and Path(str(name)).name != name:
            raise ranges.refuse(f"{where}.filename", "null, or a file's name without a folder", name)


def _check_monitors(callbacks: Mapping[str, Any]) -> None:
    """Refuse at the start what Lightning refuses after a round; a callback of a user's own may log more to monitor."""
    if not all(type(part).__module__.startswith("lightning.") for part in callbacks.values()):
        return
    for where, part in callbacks.items():
        from fedcohort.lightning.module import MONITORED  # noqa: PLC0415 - imports Lightning

        wanted = getattr(part, "monitor", None)
        allowed = (*MONITORED, "epoch", "step") if hasattr(part, "save_top_k") else MONITORED
        if wanted is not None and wanted not in allowed:
            reason = " (nothing may select on the test set)" if str(wanted).startswith("test/") else ""
            raise OptionError(f"{where}.monitor must be one of {', '.join(allowed)}, got {wanted!r}{reason}")
