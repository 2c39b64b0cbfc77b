"""What a study tunes, `tune` in its study.yaml, and what was found, `tuned.yaml` beside it.

    trials   of each row that has a space, its defaults the first of them and all of them different; of a row whose
             options have fewer combinations, all of these
    seeds    of the trials' runs, none of the study's own
    cells    where they are run: a trial's value is the mean over these cells and seeds
    metric   what they are compared by, of the server's validation set and never of the test set
    space    by row, options with what they may be: a list, or {low, high, log: false}, integers where both ends are

What is found for `flash` is the row `flash_tuned`, in all cells alike: no row is tuned for a regime. Of each row
tuned.yaml has, beside that:

    tried    the search's trials in their order, each with its words, value and commit; null and a reason where none
    spare    trials that are known and that the search, as it is now, hasn't asked for
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.startup.compose import file_of
from fedcohort.startup.options import unknown
from fedcohort.study.checks import by_name, check_keys, mapping, named, read_seeds

NAME, SUFFIX = "tuned.yaml", "_tuned"
NEEDED = ("trials", "seeds", "cells", "space")
PREFIX = "server_val/"  # of metrics that may be tuned for
FACTS = ("trials", "seeds", "cells", "metric", "words", "value", "default", "stamp", "tried", "spare")
INNER = ("stamp", "tried", "spare")  # of these facts, those that only the search reads
TRIED = ("words", "value", "commit")  # what each trial has; one without a value has a reason, too


@dataclass(frozen=True)
class Choice:
    """An option that is one of `values`."""

    values: Sequence[Any]

    def holds(self, value: object) -> bool:
        return value in self.values


@dataclass(frozen=True)
class Interval:
    """An option in [low, high]; log: equal chances for equal ratios; both ends integers: it is an integer."""

    low: float
    high: float
    log: bool

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def values(self) -> Sequence[int] | None:
        """All that it may be; None where it is any number."""
        return range(int(self.low), int(self.high) + 1) if self.whole else None

    def holds(self, value: object) -> bool:
        return isinstance(value, int if self.whole else int | float) and self.low <= value <= self.high


Range = Choice | Interval


def spell(value: object) -> str:
    """A value as it is typed."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


@dataclass(frozen=True)
class Space:
    """What is searched.

    Attributes:
        trials: of each row.
        rows: by row, options with their ranges.
    """

    trials: int
    seeds: Sequence[int]
    cells: Sequence[str]
    metric: str
    rows: Mapping[str, Mapping[str, Range]]

    def trials_of(self, row: str) -> int:
        """The trials of this row: no more than there are combinations of its options."""
        values = [each.values for each in self.rows[row].values()]
        return int(min(self.trials, math.prod(math.inf if each is None else len(each) for each in values)))


@dataclass(frozen=True)
class Tuned:
    """What was found for a row.

    Attributes:
        words: the best options.
        value: their metric; default: that of the row as it is.
        commits: of the trials, and how many each has.
    """

    row: str
    words: Sequence[str]
    trials: int
    seeds: Sequence[int]
    cells: Sequence[str]
    metric: str
    value: float
    default: float
    commits: Mapping[str, int]


def read(node: Mapping[str, Any], cells: Collection[str], seeds: Collection[int]) -> Space:
    """Check `tune`; cells, seeds: the study's. Raises `OptionError`."""
    try:
        check_keys(node, NEEDED, (*NEEDED, "metric"))
    except OptionError as error:
        raise OptionError(f"tune: {error}") from error
    ranges.integer("tune.trials", node["trials"], "[1, inf)")
    own, metric = read_seeds("tune.seeds", node["seeds"]), node.get("metric", f"{PREFIX}acc")
    if common := sorted(set(own) & set(seeds)):
        raise ranges.refuse("tune.seeds", f"none of the study's own, as {common[0]} is", node["seeds"])
    ranges.words("tune.cells", node["cells"], *cells)
    ranges.choice("tune.metric", metric, f"{PREFIX}acc")
    rows = {
        row: {
            option: _range(f"tune.space.{row}.{option}", value)
            for option, value in mapping(f"tune.space.{row}", of).items()
        }
        for row, of in mapping("tune.space", node["space"]).items()
    }
    if empty := next((row for row, of in rows.items() if not of), None):
        raise ranges.refuse(f"tune.space.{empty}", "one option or more", {})
    return Space(node["trials"], own, tuple(node["cells"]), metric, rows)


def _range(where: str, value: Any) -> Range:  # noqa: ANN401 - what a yaml holds
    if isinstance(value, Mapping):
        if strange := sorted(set(value) - {"low", "high", "log"}):
            raise unknown(where, strange[0], ("low", "high", "log"))
        low: Any = value.get("low")
        high: Any = value.get("high")
        log = value.get("log", False)
        ranges.number(f"{where}.low", low, "(-inf, inf)")
        ranges.number(f"{where}.high", high, "(-inf, inf)")
        ranges.flag(f"{where}.log", log)
        if not low < high or (log and low <= 0):
            raise ranges.refuse(where, f"an interval with low < high{', low > 0' if log else ''}", dict(value))
        return Interval(low, high, log)
    several = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 1
    if several and _are_apart(value):
        return Choice(tuple(value))
    raise ranges.refuse(where, "a list of two values or more, none twice, or {low: 0.1, high: 10, log: true}", value)


def _are_apart(values: Sequence[object]) -> bool:
    """Whether these are values of an option, none of them twice."""
    plain = all(each is None or isinstance(each, str | int | float) for each in values)
    return plain and len(set(map(spell, values))) == len(values)


def load(folder: Path) -> dict[str, Tuned]:
    """Read what was found, by the names of the new rows; none of a row whose trials aren't all done, or have failed."""
    return {
        f"{row}{SUFFIX}": Tuned(
            row,
            commits=Counter(each["commit"] for each in facts["tried"]),
            **{name: facts[name] for name in FACTS if name not in INNER},
        )
        for row, facts in load_all(folder).items()
        if facts["words"] and len(facts["tried"]) >= facts["trials"]
    }


def load_all(folder: Path) -> dict[str, dict[str, Any]]:
    """Read tuned.yaml as it stands; {} where there is none. Raises `OptionError`."""
    path = folder / NAME
    if not path.is_file():
        return {}
    with named(path, ()):
        found = {row: mapping(row, facts) for row, facts in by_name("rows", file_of(path)).items()}
        for row, facts in found.items():
            if lacks := [name for name in FACTS if name not in facts]:
                raise OptionError(f"{row}.{lacks[0]} is missing; remove the file to begin anew")
            for each in (*facts["tried"], *facts["spare"]):
                if lacks := [name for name in TRIED if name not in each]:
                    words = " ".join(each.get("words", ()))
                    raise OptionError(f"{row}: the trial {words} has no {lacks[0]}; remove it to have it done again")
        return found
