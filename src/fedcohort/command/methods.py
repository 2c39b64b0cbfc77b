"""Print the choices of groups, and what their docstrings say, as a Markdown table.

    fedcohort methods                       the selectors
    fedcohort methods agg objective         other groups

The method is the first paragraph of the component's docstring, or of the comment at the top of its yaml. The third
column has the signals that the component reads with its default options; `fedcohort/signal/` says what each costs and
reveals. A choice that is another one with options reads the same signals `as` that one, or those of its options. A
component that reads what no server can know is an oracle, called yardstick in the table.
"""

import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.signal.base import unknowable
from fedcohort.startup import components, compose

CONFIGS = Path("configs")


def rows(group: str, configs: Path = CONFIGS) -> dict[str, str]:
    """Return one line of the table for each choice of `group`."""
    return {path.stem: _row(path, group) for path in sorted((configs / group).glob("*.yaml"))}


def _row(path: Path, group: str) -> str:
    node = _options(path, group)
    if not str(node.get("_target_", "${")).startswith("${"):  # the data decide about the class of partition=own
        paper = import_module(str(node["_target_"]).rpartition(".")[0])
        first = " ".join((paper.__doc__ or "").split("\n\n")[0].split())
        return f"| `{path.stem}` | {first} | {_spell(_needs(node, group, path.stem))} |"
    names = [line.partition("@")[0] for line in compose.file_of(path).get("defaults", ()) if isinstance(line, str)]
    yamls = [yaml for name in names if (yaml := path.with_name(f"{name}.yaml")).is_file()]
    base = next((yaml for yaml in yamls if "_target_" in _options(yaml, group)), None)
    if base is None:
        return f"| `{path.stem}` | {_comment(path)} | |"
    needs = _needs({**_options(base, group), **node}, group, path.stem)
    same = needs == _needs(_options(base, group), group, base.stem)
    return f"| `{path.stem}` | {_comment(path)} | {f'as `{base.stem}`' if same else _spell(needs)} |"


def _options(path: Path, group: str) -> dict[str, Any]:
    """Return the options of the component in a yaml, uncomposed."""
    content = compose.file_of(path)
    return content if "_target_" in content else dict(content.get(group, {}))  # it chooses others as well


def _needs(node: Mapping[str, Any], group: str, choice: str) -> list[str]:
    module, _, name = str(node["_target_"]).rpartition(".")
    reads = hasattr(getattr(import_module(module), name), "needs")
    return sorted(components.build(node, group, choice).needs) if reads else []


def _spell(needs: Sequence[str]) -> str:
    oracle = unknowable(needs)
    signals = [f"`{name}`{' (yardstick: no server can know it)' if name in oracle else ''}" for name in needs]
    return ", ".join(signals) or "nothing"


def _comment(path: Path) -> str:
    """Return the first paragraph of the comment at the top of a yaml; a bare # ends it."""
    text = re.sub(r"^# @package .*\n", "", path.read_text())
    lines = itertools.takewhile(lambda line: line.startswith("# "), text.splitlines())
    return " ".join(" ".join(line[2:] for line in lines).split())


def main(words: Sequence[str]) -> int:
    """Print the tables of the groups in `words`. Raises `OptionError` for what is no group."""
    groups = sorted(path.name for path in CONFIGS.glob("*") if any(path.glob("*.yaml")))
    for group in words:
        ranges.choice("a group", group, *groups)
    for group in words or ["selector"]:
        lines = ["| word | method | reads |", "|---|---|---|", *rows(group).values()]
        sys.stdout.write("\n".join(lines) + "\n")
    return 0
