"""`python -m fedcohort.methods [group ...]`: the words of a group with what their docstrings say of them, as Markdown.

    | word | method | reads |

The method is the docstring's first paragraph; a yaml that stands for a composition gives that of its comment. What is
read are the part's `needs` with the yaml's defaults: words of `fedcohort/signal/`, which say what they cost and reveal.
A part that reads what no server can know is a yardstick: the word says which.
"""

import ast
import itertools
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

from fedcohort.signal.base import unknowable

CONFIGS = Path("configs")


def rows(group: str, configs: Path = CONFIGS) -> dict[str, str]:
    """One line of the table for each word of `group`."""
    found = {}
    for path in sorted((configs / group).glob("*.yaml")):
        node: Any = OmegaConf.to_container(OmegaConf.load(path))
        own = node.get(group)  # a part that chooses words of other groups with it
        found[path.stem] = _row(path, own if isinstance(own, dict) and "_target_" in own else node)
    return found


def _row(path: Path, node: Mapping[str, Any]) -> str:
    if "_target_" not in node:
        return f"| `{path.stem}` | {_comment(path)} | |"
    module = str(node["_target_"]).rpartition(".")[0]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(module)
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    first = " ".join(text.split("\n\n")[0].split())
    needs = sorted(instantiate(node, _convert_="all").needs) if hasattr(get_class(node["_target_"]), "needs") else []
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


def main(groups: list[str]) -> int:
    """The exit code."""
    known = sorted(path.name for path in CONFIGS.glob("*") if any(path.glob("*.yaml")))
    if wrong := next((group for group in groups if group not in known), None):
        sys.stderr.write(f"a group must be one of {', '.join(known) or f'the folders in {CONFIGS}'}, got {wrong!r}\n")
        return 2
    for group in groups or ["selector"]:
        sys.stdout.write(f"{table(group)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
