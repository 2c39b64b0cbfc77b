"""fedcohort methods [group ...]: the words of a group with what their docstrings say of them, as Markdown.

    | word | method | reads |

The method is the docstring's first paragraph; a yaml that stands for a composition gives that of its comment. What is
read are the part's `needs` with the yaml's defaults: words of `fedcohort/signal/`, which say what they cost and reveal.
A part that reads what no server can know is a yardstick: the word says which.
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
from fedcohort.startup import assemble, compose

CONFIGS = Path("configs")


def rows(group: str, configs: Path = CONFIGS) -> dict[str, str]:
    """Return one line of the table for each word of `group`."""
    found = {}
    for path in sorted((configs / group).glob("*.yaml")):
        node = compose.file_of(path)
        own = node.get(group)  # a part that chooses words of other groups with it
        found[path.stem] = _row(path, own if isinstance(own, dict) and "_target_" in own else node)
    return found


def _row(path: Path, node: Mapping[str, Any]) -> str:
    if "_target_" not in node:
        return f"| `{path.stem}` | {_comment(path)} | |"
    module, _, name = str(node["_target_"]).rpartition(".")
    paper = import_module(module)
    first = " ".join((paper.__doc__ or "").split("\n\n")[0].split())
    reads = hasattr(getattr(paper, name), "needs")
    needs = sorted(assemble.build(node, path.parent.name, path.stem).needs) if reads else []
    oracle = unknowable(needs)
    read = [f"`{word}`{' (yardstick: no server can know it)' if word in oracle else ''}" for word in needs]
    return f"| `{path.stem}` | {first} | {', '.join(read) or 'nothing'} |"


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
