"""Print the choices of groups, or the signals, as a Markdown table.

    fedcohort methods                       the selectors
    fedcohort methods agg objective         other groups
    fedcohort methods signals               signals that selectors can read: kind, cost, information revealed

The method is the first paragraph of the component's docstring, or of the comment at the top of its yaml. The third
column has the signals that the component reads with its default options. A choice that is another one with options
reads the same signals `as` that one, or those of its options. A component that reads what no server can know is an
oracle. The fourth column is of selectors: whether the method works under secure aggregation, where the server gets sums
of updates only. It does if it reads no update or gradient of a single client, and nothing that is computed from one.
"""

import itertools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.signal import base
from fedcohort.startup import components, compose

CONFIGS_FOLDER = Path("configs")
SIGNALS_TABLE = "signals"
KIND_BY_SIGNAL_TYPE: dict[type, str] = {
    base.Static: "sent once, at registration",
    base.Measured: "queried in a round",
    base.Computed: "queried in a round",
    base.Forecast: "queried in a round, without the model",
    base.Reported: "sent with the update",
    base.RawUpdate: "the update itself",
    base.Derived: "computed from the updates",
    base.ServerMeasured: "measured by the server",
}


def make_table_rows(group: str, configs: Path = CONFIGS_FOLDER) -> dict[str, str]:
    """Return one line of the table for each choice of the config group `group`, by choice.

    `configs` is the folder of the config groups.
    """
    return {path.stem: _make_row(path, group) for path in sorted((configs / group).glob("*.yaml"))}


def reads_single_updates(signal_names: Iterable[str]) -> bool:
    """Return whether one of the signals `signal_names` is, or is computed from, one client's update or gradient."""
    kinds = [base.find_signal(name) for name in signal_names]
    return any(isinstance(kind, base.RawUpdate | base.Derived) or getattr(kind, "is_gradient", False) for kind in kinds)


def make_signal_rows() -> list[str]:
    """Return one line of the table for each signal of this package.

    Its cost is in bytes for each number and in forward passes over a client's samples, as `4 B, 1 forward pass`.
    """
    table_lines = []
    for name in base.list_signals():
        signal, oracle_mark = base.find_signal(name), " (oracle)" if name in base.unknowable_signals([name]) else ""
        kind_name, n_passes = KIND_BY_SIGNAL_TYPE[type(signal)], getattr(signal, "passes", 0.0)
        if isinstance(signal, base.Static | base.Reported) and not signal.bytes_up:
            kind_name = "known to the server" if isinstance(signal, base.Static) else "read off the update"
        costs = [f"{signal.bytes_up} B"] if signal.bytes_up else []
        if callable(n_passes):
            costs.append("forward passes by its options")
        elif n_passes:
            costs.append(f"{n_passes:g} forward pass{'es' if n_passes != 1 else ''}")
        costs += ["local training of some clients"] if getattr(signal, "jobs", None) else []
        costs += ["local training"] if getattr(signal, "trains", False) else []
        table_lines.append(f"| `{name}`{oracle_mark} | {kind_name} | {', '.join(costs) or 'none'} | {signal.reveals} |")
    return table_lines


def _make_row(path: Path, group: str) -> str:
    node = _read_options(path, group)
    if not str(node.get("_target_", "${")).startswith("${"):  # the data decide the class of partition=own
        module = import_module(str(node["_target_"]).rpartition(".")[0])
        summary = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        if any(str(value).startswith("${") for value in node.values()):  # an option of the run decides its value
            node = compose.compose_group(group, [f"{group}={path.stem}"], path.parents[1].absolute())
        signals_read = _list_signals_read(node, group, path.stem)
        signal_cells = f"{_format_signals(signals_read)} |{_format_secure_cell(signals_read, group)}"
        return f"| `{path.stem}` | {summary} | {signal_cells}"
    names = [line.partition("@")[0] for line in compose.read_yaml(path).get("defaults", ()) if isinstance(line, str)]
    base_yamls = [yaml for name in names if (yaml := path.with_name(f"{name}.yaml")).is_file()]
    base_yaml = next((yaml for yaml in base_yamls if "_target_" in _read_options(yaml, group)), None)
    if base_yaml is None:
        return f"| `{path.stem}` | {read_comment(path)} | |"
    signals_read = _list_signals_read({**_read_options(base_yaml, group), **node}, group, path.stem)
    reads_equal_signals = signals_read == _list_signals_read(_read_options(base_yaml, group), group, base_yaml.stem)
    signals_text = f"as `{base_yaml.stem}`" if reads_equal_signals else _format_signals(signals_read)
    return f"| `{path.stem}` | {read_comment(path)} | {signals_text} |{_format_secure_cell(signals_read, group)}"


def _format_secure_cell(signal_names: Sequence[str], group: str) -> str:
    """Return the end of a selector's line, whether it works under secure aggregation; "" for other groups.

    Args:
        signal_names: signals that the component reads.
        group: config group of the component.
    """
    return f" {'no' if reads_single_updates(signal_names) else 'yes'} |" * (group == "selector")


def _read_options(path: Path, group: str) -> dict[str, Any]:
    """Return the options of the component in the yaml `path`, uncomposed; `group` is its config group."""
    content = compose.read_yaml(path)
    return content if "_target_" in content else dict(content.get(group, {}))  # it chooses others as well


def _list_signals_read(component_options: Mapping[str, Any], group: str, choice: str) -> list[str]:
    """Return the sorted names of the signals that a component reads.

    Args:
        component_options: options of the component, uncomposed.
        group: config group of the component.
        choice: choice of the component in this group.
    """
    module, _, name = str(component_options["_target_"]).rpartition(".")
    reads_signals = hasattr(getattr(import_module(module), name), "needs")
    return sorted(components.build_component(component_options, group, choice).needs) if reads_signals else []


def _format_signals(needs: Sequence[str]) -> str:
    oracle_signals = base.unknowable_signals(needs)
    signal_texts = [f"`{name}`{' (oracle: no server can know it)' if name in oracle_signals else ''}" for name in needs]
    return ", ".join(signal_texts) or "nothing"


def read_comment(path: Path) -> str:
    """Return the first paragraph of the comment at the top of the yaml `path`; a bare # ends it."""
    yaml_text = re.sub(r"^# @package .*\n", "", path.read_text())
    comment_lines = itertools.takewhile(lambda comment_line: comment_line.startswith("# "), yaml_text.splitlines())
    return " ".join(" ".join(comment_line[2:] for comment_line in comment_lines).split())


def main(arguments: Sequence[str]) -> int:
    """Print the tables of the groups in `arguments`. Raises `OptionError` for a name that is no group."""
    groups = sorted(path.name for path in CONFIGS_FOLDER.glob("*") if any(path.glob("*.yaml")))
    for group in arguments:
        ranges.choice("a group", group, *groups, SIGNALS_TABLE)
    for group in arguments or ["selector"]:
        if group == SIGNALS_TABLE:
            table_lines = ["| signal | kind | cost a client | reveals |", "|---|---|---|---|", *make_signal_rows()]
        else:
            header_lines = ["| option | method | reads |", "|---|---|---|"]
            if group == "selector":
                header_lines = ["| option | method | reads | secure aggregation |", "|---|---|---|---|"]
            table_lines = [*header_lines, *make_table_rows(group).values()]
        sys.stdout.write("\n".join(table_lines) + "\n")
    return 0
