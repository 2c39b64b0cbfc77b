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
    """Return one line of the table for each word of `group`."""
    return {path.stem: _row(path, group) for path in sorted((configs / group).glob("*.yaml"))}


def _row(path: Path, group: str) -> str:
    node = _node(path, group)
    if not str(node.get("_target_", "${")).startswith("${"):  # that of partition=own is its data's
        paper = import_module(str(node["_target_"]).rpartition(".")[0])
        first = " ".join((paper.__doc__ or "").split("\n\n")[0].split())
        return f"| `{path.stem}` | {first} | {_spell(_needs(node, group, path.stem))} |"
    base = _base(path, group)
    if base is None:
        return f"| `{path.stem}` | {_comment(path)} | |"
    theirs, ours = _node(base, group), {**_node(base, group), **node}
    needs = _needs(ours, group, path.stem)
    same = needs == _needs(theirs, group, base.stem)
    return f"| `{path.stem}` | {_comment(path)} | {f'as `{base.stem}`' if same else _spell(needs)} |"


def _node(path: Path, group: str) -> dict[str, Any]:
    """Return the options that a word's yaml has of its own part, uncomposed."""
    whole = compose.file_of(path)
    return whole if "_target_" in whole else dict(whole.get(group, {}))  # of a word that chooses others with it


def _base(path: Path, group: str) -> Path | None:
    """Return the yaml of the word that another stands for with options of its own; None where it names none."""
    lines = [each.partition("@")[0] for each in compose.file_of(path).get("defaults", ()) if isinstance(each, str)]
    found = [path.with_name(f"{word}.yaml") for word in lines]
    return next((each for each in found if each.is_file() and "_target_" in _node(each, group)), None)


def _needs(node: Mapping[str, Any], group: str, word: str) -> list[str]:
    module, _, name = str(node["_target_"]).rpartition(".")
    reads = hasattr(getattr(import_module(module), name), "needs")
    return sorted(components.build(node, group, word).needs) if reads else []


def _spell(needs: Sequence[str]) -> str:
    oracle = unknowable(needs)
    read = [f"`{word}`{' (yardstick: no server can know it)' if word in oracle else ''}" for word in needs]
    return ", ".join(read) or "nothing"


def _comment(path: Path) -> str:
    """The first paragraph of the comment that a yaml begins with; a bare # ends it."""
    text = re.sub(r"^# @package .*\n", "", path.read_text())
    lines = itertools.takewhile(lambda line: line.startswith("# "), text.splitlines())
    return " ".join(" ".join(line[2:] for line in lines).split())


def table(group: str) -> str:
    """The whole table."""
    return "\n".join(["| word | method | reads |", "|---|---|---|", *rows(group).values()])


def main(words: Sequence[str]) -> int:
    """The command. Raises `OptionError` for what is no group."""
    for group in words:
        ranges.choice("a group", group, *sorted(path.name for path in CONFIGS.glob("*") if any(path.glob("*.yaml"))))
    for group in words or ["selector"]:
        sys.stdout.write(f"{table(group)}\n")
    return 0
