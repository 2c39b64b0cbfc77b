"""Make the observers of a run, its tracker, and the Lightning callbacks that a user adds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.record.observer import Observer
from fedcohort.record.status import RunStatus
from fedcohort.startup import components
from fedcohort.startup.command_line import is_inside_logs_folder
from fedcohort.startup.components import CALLBACK_CONTRACT, ConfiguredObject
from fedcohort.startup.compose import Composition

# options of callbacks and trackers that are folders
FOLDER_OPTIONS = frozenset({"dirpath", "save_dir", "root_dir", "logs"})


@dataclass(frozen=True)
class RunObservers:
    """The observers and callbacks of a run.

    Attributes:
        observers: the observers in the order of configs/callback, then the tracker, which uploads their files, then the
            writer of status.json.
        callbacks: Lightning callbacks, which may end the run before its last round.
        callback_configs: configs of these callbacks, sorted.
    """

    observers: Sequence[Observer]
    callbacks: Sequence[Any]
    callback_configs: Sequence[Any]


def make_observers(composition: Composition) -> RunObservers:
    """Return the observers and callbacks that the config `composition` names; raise `OptionError` if one is invalid."""
    nodes = {f"callback.{k}": node for k, node in composition.config["callback"].items() if node}
    _check_logs_folders({**nodes, "logger": composition.config["logger"]}, composition.config["paths"]["logs"])
    observers, callbacks = list[Observer](), dict[str, ConfiguredObject]()
    for node_name, node in nodes.items():
        if not isinstance(node, Mapping) or "_target_" not in node:
            raise ranges.range_error(node_name, "null, or a class in _target_ with its options", node)
        component = components.build_component(node, node_name, node_name, CALLBACK_CONTRACT)
        if isinstance(component, Observer):
            observers.append(component)
        else:
            callbacks[node_name] = component
    _check_monitored_metrics(callbacks)
    mlflow_tracker = components.make_component(composition, "logger")
    callback_json_texts = sorted(json.dumps(nodes[node_name], sort_keys=True, default=str) for node_name in callbacks)
    callback_configs = [json.loads(t) for t in callback_json_texts]  # equal to those that are read from a file
    observers += [*([] if mlflow_tracker is None else [mlflow_tracker]), RunStatus(callback_configs)]
    return RunObservers(observers, list(callbacks.values()), callback_configs)


def _check_logs_folders(node_by_path: Mapping[str, object], logs_path: str) -> None:
    """Raise `OptionError` for a folder outside `logs_path` in the options of an observer, a callback or the tracker.

    A `filename` must not contain a folder. `node_by_path` are the config nodes of these objects by path.
    """
    for node_name, node in node_by_path.items():
        node_options = node if isinstance(node, Mapping) else {}
        for folder_option in FOLDER_OPTIONS & node_options.keys():
            folder = node_options[folder_option]
            if folder is not None and folder != logs_path and not is_inside_logs_folder(str(folder), logs_path):
                raise ranges.range_error(
                    f"{node_name}.{folder_option}",
                    f"null, or a folder inside paths.logs={logs_path}, the only folder that a run writes to",
                    folder,
                )
        file_name = node_options.get("filename")
        if file_name is not None and Path(str(file_name)).name != file_name:
            raise ranges.range_error(f"{node_name}.filename", "null, or a file's name without a folder", file_name)


def _check_monitored_metrics(callbacks: Mapping[str, Any]) -> None:
    """Raise `OptionError` for a monitor that is no metric; Lightning would raise an error only after a round.

    `callbacks` has the callbacks by their path in the config. A callback that is not Lightning's may log further
    metrics. With such a callback nothing is checked.
    """
    if not all(type(callback).__module__.startswith("lightning.") for callback in callbacks.values()):
        return
    for node_name, callback in callbacks.items():
        from fedcohort.lightning.module import MONITORED_METRICS  # noqa: PLC0415 - imports Lightning

        monitored_metric = getattr(callback, "monitor", None)
        valid_metrics = (*MONITORED_METRICS, "epoch", "step") if hasattr(callback, "save_top_k") else MONITORED_METRICS
        if monitored_metric is not None and monitored_metric not in valid_metrics:
            reason = " (nothing may select on the test set)" if str(monitored_metric).startswith("test/") else ""
            raise OptionError(
                f"{node_name}.monitor must be one of {', '.join(valid_metrics)}, got {monitored_metric!r}{reason}"
            )
