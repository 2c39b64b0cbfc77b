"""Print the choices of groups, or the signals, as a Markdown table.

    fedcohort methods                       the selectors
    fedcohort methods agg objective         other groups; plurals and `aggregator` are accepted, too
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
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.command.new import GROUP_BY_KIND
from fedcohort.console.terminal import print_markdown
from fedcohort.signal import base
from fedcohort.startup import components, compose

CONFIGS_FOLDER = Path("configs")
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
    return {yaml_path.stem: _make_table_row(yaml_path, group) for yaml_path in sorted((configs / group).glob("*.yaml"))}


def reads_single_updates(signal_names: Iterable[str]) -> bool:
    """Return whether one of the signals `signal_names` is, or is computed from, one client's update or gradient."""
    signals = [base.find_signal(n) for n in signal_names]
    return any(isinstance(s, base.RawUpdate | base.Derived) or getattr(s, "is_gradient", False) for s in signals)


def make_signal_rows() -> list[str]:
    """Return one line of the table for each signal of this package.

    The cost is in bytes for each number that is sent, and in forward passes over a client's samples, such as
    `4 B, 1 forward pass`.
    """
    table_lines = []
    for name in base.list_signals():
        signal, oracle_mark = base.find_signal(name), " (oracle)" if name in base.find_oracle_signals([name]) else ""
        kind_text, n_forward_passes = KIND_BY_SIGNAL_TYPE[type(signal)], getattr(signal, "passes", 0.0)
        if isinstance(signal, base.Static | base.Reported) and not signal.bytes_up:
            kind_text = "known to the server" if isinstance(signal, base.Static) else "read off the update"
        costs = [f"{signal.bytes_up} B"] if signal.bytes_up else []
        if callable(n_forward_passes):
            costs.append("forward passes by its options")
        elif n_forward_passes:
            costs.append(f"{n_forward_passes:g} forward pass{'es' if n_forward_passes != 1 else ''}")
        costs += ["local training of some clients"] if getattr(signal, "jobs", None) else []
        costs += ["local training"] if getattr(signal, "trains", False) else []
        table_lines.append(f"| `{name}`{oracle_mark} | {kind_text} | {', '.join(costs) or 'none'} | {signal.reveals} |")
    return table_lines


def _make_table_row(path: Path, group: str) -> str:
    options = _read_options(path, group)
    if not str(options.get("_target_", "${")).startswith("${"):  # the data decide the class of partition=own
        choice_class = components.import_class(options["_target_"], group, f"{group}={path.stem}")
        method_summary = " ".join((sys.modules[choice_class.__module__].__doc__ or "").split("\n\n")[0].split())
        if any(str(v).startswith("${") for v in options.values()):  # an option of the run decides its value
            options = compose.compose_group(group, [f"{group}={path.stem}"], path.parents[1].absolute())
        signals_read = _list_signals_read(options, group, path.stem)
        signal_cells = f"{_format_signals(signals_read)} |{_format_secure_cell(signals_read, group)}"
        return f"| `{path.stem}` | {method_summary} | {signal_cells}"
    default_paths = [
        path.with_name(f"{default.partition('@')[0]}.yaml")
        for default in compose.read_yaml(path).get("defaults", ())
        if isinstance(default, str)
    ]
    base_path = next((p for p in default_paths if p.is_file() and "_target_" in _read_options(p, group)), None)
    if base_path is None:
        return f"| `{path.stem}` | {read_yaml_comment(path)} | |"
    signals_read = _list_signals_read({**_read_options(base_path, group), **options}, group, path.stem)
    reads_equal_signals = signals_read == _list_signals_read(_read_options(base_path, group), group, base_path.stem)
    signals_text = f"as `{base_path.stem}`" if reads_equal_signals else _format_signals(signals_read)
    return f"| `{path.stem}` | {read_yaml_comment(path)} | {signals_text} |{_format_secure_cell(signals_read, group)}"


def _format_secure_cell(signal_names: Sequence[str], group: str) -> str:
    """Return the last cell of a selector's line: whether it works under secure aggregation; "" for other groups.

    Args:
        signal_names: signals that the component reads.
        group: config group of the component.
    """
    return f" {'no' if reads_single_updates(signal_names) else 'yes'} |" * (group == "selector")


def _read_options(yaml_path: Path, group: str) -> dict[str, Any]:
    """Return the options of the component in the yaml `yaml_path`, uncomposed; `group` is its config group."""
    options = compose.read_yaml(yaml_path)
    return options if "_target_" in options else dict(options.get(group, {}))  # it chooses others as well


def _list_signals_read(component_options: Mapping[str, Any], group: str, component_choice: str) -> list[str]:
    """Return the sorted names of the signals that a component reads.

    Args:
        component_options: options of the component, uncomposed.
        group: config group of the component.
        component_choice: choice of the component in this group.
    """
    component_class = components.import_class(component_options["_target_"], group, f"{group}={component_choice}")
    return (
        sorted(components.build_component(component_options, group, f"{group}={component_choice}").needs)
        if hasattr(component_class, "needs")
        else []
    )


def _format_signals(signal_names: Sequence[str]) -> str:
    oracle_signals = base.find_oracle_signals(signal_names)
    signal_texts = [f"`{n}`{' (oracle: no server can know it)' if n in oracle_signals else ''}" for n in signal_names]
    return ", ".join(signal_texts) or "nothing"


def read_yaml_comment(yaml_path: Path) -> str:
    """Return the first paragraph of the comment at the top of the yaml `yaml_path`; a bare # ends it."""
    yaml_text = re.sub(r"^# @package .*\n", "", yaml_path.read_text())
    comment_lines = itertools.takewhile(lambda comment_line: comment_line.startswith("# "), yaml_text.splitlines())
    return " ".join(" ".join(comment_line[2:] for comment_line in comment_lines).split())


def main(arguments: Sequence[str]) -> int:
    """Print a table of the methods in each config group of `arguments`, such as selector; return the exit code, 0.

    A plural, such as `signals`, or a kind of `fedcohort new` names a group, too. Raises `OptionError` for other names.
    """
    valid_groups = sorted({"signal", *(p.name for p in CONFIGS_FOLDER.glob("*") if any(p.glob("*.yaml")))})
    group_by_name = GROUP_BY_KIND | {group: group for group in valid_groups}
    group_by_name |= {f"{name}s": group for name, group in group_by_name.items()}
    groups = [group_by_name.get(name, name) for name in arguments or ["selector"]]
    for group in groups:
        ranges.choice("a group", group, *valid_groups)
    for group in groups:
        if group == "signal":
            table_lines = ["| signal | kind | cost a client | reveals |", "|---|---|---|---|", *make_signal_rows()]
        else:
            headings = ["option", "method", "reads", *["secure aggregation"] * (group == "selector")]
            table_lines = [
                f"| {' | '.join(headings)} |",
                "|---" * len(headings) + "|",
                *make_table_rows(group).values(),
            ]
        print_markdown("\n".join(table_lines) + "\n")
    return 0
