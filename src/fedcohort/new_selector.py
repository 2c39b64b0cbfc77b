"""`python -m fedcohort.new_selector NAME`: the three files of a new selector, which runs as it stands.

It prefers clients with more samples, so that every part of the contract is seen at work: replace that by your paper.
"""

import keyword
import sys
from pathlib import Path

from fedcohort.commands import command

MODULE = '''"""{title}: one sentence. Cite the paper here.

    A_k = (n_k / max_j n_j)^power,   S_t = the clients with the largest A_k        (replace by your update rule)

Departures from the paper:
- a client that fails three times in a row rests for a while (`backoff.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from fedcohort import ranges
from fedcohort.selector import backoff
from fedcohort.selector.backoff import Backoff
from fedcohort.selector.base import top
from fedcohort.types import Advice, Population, Probe, ProbeResult, RoundContext, RoundOutcome, Selection


@dataclass(frozen=True)
class State:
    """What changes between rounds; it is saved and restored for you. rests: of clients that failed."""

    rests: Backoff = backoff.NOBODY


@dataclass(frozen=True)
class {title}:
    """power: how much size counts; 0 is a uniform draw."""

    power: float

    needs: ClassVar[frozenset[str]] = frozenset({{"n_train"}})
    advises: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ranges.number("power", self.power, "[0, inf)")

    def init(self, population: Population) -> State:
        return State()

    def plan(self, state: State, ctx: RoundContext) -> Sequence[Probe]:
        return ()

    def select(self, state: State, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, State]:
        n = ctx.signals["n_train"].astype(float)
        scores = (n / max(n.max(), 1.0)) ** self.power
        here = backoff.ready(state.rests, ctx).available  # without those who fail again and again
        return Selection(top(scores, here, ctx.cohort, ctx.rng), scores=scores), state

    def observe(self, state: State, outcome: RoundOutcome) -> tuple[Advice | None, State]:
        return None, replace(state, rests=backoff.after(state.rests, outcome))

    def trace(self, state: State) -> Mapping[str, tuple[float, float]]:
        return {{}}
'''

YAML = """_target_: fedcohort.selector.{name}.{title}
power: 1.0           # number in [0, inf); how much size counts
"""

TEST = '''"""{title}: closed forms. The laws of tests/laws run over it already."""

import numpy as np

from selector_harness import context
from yaml_words import make


def test_the_largest_clients_come_first() -> None:
    selector = make("selector", "{name}")
    ctx = context(n_clients=3, cohort=2, signals={{"n_train": np.array([10, 30, 20])}})
    selection, _ = selector.select(selector.init(None), ctx, {{}})
    assert selection.clients.tolist() == [1, 2]
'''


def files(name: str) -> dict[Path, str]:
    """Path and text of each file. Raises `SystemExit` for a name that can't be a module."""
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise SystemExit(f"NAME must be a lower-case Python name such as my_method, got {name!r}")
    title = "".join(word.capitalize() for word in name.split("_"))
    return {
        Path(f"src/fedcohort/selector/{name}.py"): MODULE.format(name=name, title=title),
        Path(f"configs/selector/{name}.yaml"): YAML.format(name=name, title=title),
        Path(f"tests/selector/test_{name}.py"): TEST.format(name=name, title=title),
    }


def main(name: str, root: Path) -> None:
    """Write them, unless one is there."""
    made = {root / path: text for path, text in files(name).items()}
    there = [path for path in made if path.exists()]
    if there:
        raise SystemExit(f"{there[0]} is there already")
    for path, text in made.items():
        path.write_text(text)
        sys.stdout.write(f"wrote {path.relative_to(root)}\n")
    sys.stdout.write(f"try it: {command('python')} train.py selector={name}\ntest it: ")
    sys.stdout.write(f'make test T="tests/selector tests/laws -k {name}"\n')


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m fedcohort.new_selector NAME")
    main(sys.argv[1], Path.cwd())
