"""A study's definition, `studies/<name>/study.yaml`: what is asked, where, of whom, and what counts as an answer.

    title, question   texts
    common            words of every run: [dataset=digits, rounds=60]
    baseline          the row that all others are compared with: a word of selector, or as below
    selectors         methods: `flash`, or `flash_wide: [selector=flash, selector.gamma=2]`
    yardsticks        the same, of those that read what no server can know: the best of them says what there is to win
    beside            the same, shown but no part of that: `full` trains everybody, `worst` chooses badly
    cells             regimes in their order: label, axis, words, bounds (overrides by name), target, rows (those that
                        the regime is asked for, all where it doesn't say, unless `selectors` names them), family (a
                        name of regimes that differ in cohort size or level only: they weigh as one in means over all),
                        oracle (the one of `yardsticks` whose gain is the headroom; of several, one is chosen on seeds
                        that are left out)
    seeds, metric, late, target, win.alpha, win.least, win.equal, win.seeds, win.worth
    few                 {oracle_greedy: 3}: rows that are run on the first so many seeds, unless `selectors` names them
    variants            {repairs: [flash_whitened, flash_progress]}: tries of one idea, whose p is corrected together
    tune                what `fedcohort study tune` searches (`space.py`)

Of words with one key the last counts: those of a selector over those of its cell, those over the common ones. A bound
is run with the baseline, and its words stand where the cell's do.
"""

import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import lower_is_better
from fedcohort.results.verdict import Rules
from fedcohort.startup.compose import file_of
from fedcohort.startup.options import unknown
from fedcohort.study import space
from fedcohort.study.checks import (
    by_name,
    check_heard,
    check_keys,
    mapping,
    named,
    read_few,
    read_seeds,
    read_variants,
    read_win,
    read_words,
)
from fedcohort.study.measure import Crossing
from fedcohort.study.space import Space, Tuned

NAME = "study.yaml"
BOUND = "bound:"  # before the name of a bound, where selectors stand
METHOD, YARDSTICK, BESIDE, BASELINE, LIMIT = "method", "yardstick", "beside", "baseline", "bound"
DEFAULTS: dict[str, Any] = {
    "common": [],
    "yardsticks": [],
    "beside": [],
    "metric": "test/acc",
    "late": None,
    "target": None,
    "win": {},
}
DEFAULTS |= {"crossing": "mean", "tune": None, "few": {}, "variants": {}, "notes": []}
NEEDED = ("title", "question", "baseline", "selectors", "cells", "seeds")
CLIENTS = "eval.clients_every="  # the rounds that evaluate all clients
ONE, MANY = "a word of selector, or `name: [overrides]`", "a list of words of selector, or of `name: [overrides]`"
Words = tuple[str, ...]


@dataclass(frozen=True)
class Regime:
    """A cell of a study: a federation that selectors are tried in.

    Attributes:
        label: how tables call it.
        axis: what it is a point of, as "label noise".
        bounds: overrides by name of the same federation without the heterogeneity: instead of `words`.
        target: of the metric, whose time is measured; None for none.
        rows: those that are run there beside the baseline and the bounds; None for all.
    """

    name: str
    label: str
    axis: str
    words: Words
    bounds: Mapping[str, Words]
    target: float | None
    rows: Sequence[str] | None
    family: str
    oracle: str | None = None


@dataclass(frozen=True)
class Study:
    """What `study.yaml` says.

    Attributes:
        words: of each row, by its name; those of the bounds are in the cells.
        roles: of each row: method, yardstick, beside or baseline.
        late: number of evaluations at a run's end whose mean is its result; None for those of its last sixth.
        crossing: mean or first; see `measure.summarise`.
        alpha: the level at which a difference counts, after Holm.
        least: a difference that is smaller doesn't count, however sure it is; in the metric's own unit.
        equal: margin of equivalence, in the metric's own unit.
        enough: paired seeds below which nothing is said: two that happen to be alike have no spread.
        worth: the difference that the number of seeds is told for, in the metric's own unit.
        space: what is tuned, None for nothing.
        tuned: by the name of its row, `<row>_tuned`, what was found.
        few: by row, of how many of the seeds, the first, it is asked for; of all where it isn't named.
        variants: by a name, methods that are tries of one idea: the p-values of all of them are corrected together.
        notes: what else has to be known to read the page, a line each.
    """

    folder: Path
    title: str
    question: str
    common: Words
    baseline: str
    words: Mapping[str, Words]
    roles: Mapping[str, str]
    cells: Mapping[str, Regime]
    seeds: Sequence[int]
    metric: str
    late: int | None
    alpha: float
    least: float
    equal: float
    enough: int
    worth: float
    crossing: Crossing = "mean"
    space: Space | None = None
    tuned: Mapping[str, Tuned] = field(default_factory=dict)
    few: Mapping[str, int] = field(default_factory=dict)
    variants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def late_window(self) -> str:
        """The evaluations of a run whose mean is its result, in words."""
        if self.late is None:
            return "its evaluations in the last sixth of its rounds (at least three)"
        return f"its last {self.late} evaluation{'s' if self.late > 1 else ''}"

    @property
    def rules(self) -> Rules:
        """What counts as a difference, as `results.verdict` reads it."""
        return Rules(self.alpha, self.least, self.equal, self.enough, worth=self.worth)

    def seeds_of(self, row: str) -> Sequence[int]:
        """The seeds that the row is asked for."""
        return self.seeds[: self.few.get(row, len(self.seeds))]

    def asks(self, cell: str, row: str) -> bool:
        """Whether the cell has the row run: each has the baseline, its bounds and a user's own methods."""
        rows = self.cells[cell].rows
        return rows is None or row in rows or row == self.baseline or row not in self.roles

    def role_of(self, row: str) -> str:
        """What the row is: one that `study.yaml` doesn't name is a user's own method."""
        return LIMIT if row.startswith(BOUND) else self.roles.get(row, METHOD)


def load(folder: Path) -> Study:
    """Read `study.yaml`. Raises `OptionError` that names the file and the option."""
    path = folder / NAME
    if not path.is_file():
        there = sorted(each.parent.name for each in folder.parent.glob(f"*/{NAME}"))
        raise OptionError(
            f"there is no study {folder.name!r}; there are {', '.join(there) or 'none'} in {folder.parent}"
        )
    with named(path, NEEDED):
        return _read(folder, file_of(path))


def _read(folder: Path, given: Mapping[str, Any]) -> Study:
    check_keys(given, NEEDED, (*NEEDED, *DEFAULTS))
    node = {**DEFAULTS, **given}
    for key in ("title", "question", "metric"):
        ranges.text(key, node[key])
    if lower_is_better(node["metric"]):
        raise ranges.refuse("metric", "one of which more is better", node["metric"])
    common = read_words("common", node["common"])
    if node["metric"].startswith("clients/") and not any(word.startswith(CLIENTS) for word in common):
        raise OptionError(
            f"metric={node['metric']} needs {CLIENTS}1 or more in common: runs of a study have 0, which is no round"
        )
    ranges.integer("late", node["late"], "[1, inf)", optional=True)
    ranges.choice("crossing", node["crossing"], *typing.get_args(Crossing))
    ranges.number("target", node["target"], "(-inf, inf)", optional=True)
    rows, roles = _rows(node)
    ranges.texts("notes", node["notes"])
    cells, seeds = _cells(by_name("cells", node["cells"]), node["target"]), read_seeds("seeds", node["seeds"])
    for option, words in (("common", common), *((f"cells.{name}.words", cell.words) for name, cell in cells.items())):
        check_heard(option, words, rows)
    found = space.load(folder)
    for name, each in found.items():
        rows[name], roles[name] = (*rows.get(each.row, (f"selector={each.row}",)), *each.words), METHOD
    others = [row for row in rows if roles[row] != BASELINE]
    for cell in cells.values():
        if cell.rows is not None:
            ranges.words(f"cells.{cell.name}.rows", cell.rows, *others)
        if cell.oracle is not None:
            oracles = [row for row in rows if roles[row] == YARDSTICK]
            ranges.choice(f"cells.{cell.name}.oracle", cell.oracle, *oracles)
    return Study(
        folder=folder,
        title=node["title"],
        question=node["question"],
        common=common,
        baseline=next(iter(rows)),
        words=rows,
        roles=roles,
        cells=cells,
        seeds=seeds,
        metric=node["metric"],
        late=node["late"],
        crossing=node["crossing"],
        **read_win(node["win"]),
        space=None if node["tune"] is None else space.read(mapping("tune", node["tune"]), cells, seeds),
        tuned=found,
        few=read_few(node["few"], others, len(seeds)),
        variants=read_variants(node["variants"], [row for row in rows if roles[row] == METHOD]),
        notes=tuple(node["notes"]),
    )


def _rows(node: Mapping[str, Any]) -> tuple[dict[str, Words], dict[str, str]]:
    """Return the words of each row, and what it is; the baseline is the first."""
    base, words = _row("baseline", node["baseline"], ONE)
    rows, roles = {base: words}, {base: BASELINE}
    for key, role in (("selectors", METHOD), ("yardsticks", YARDSTICK), ("beside", BESIDE)):
        given = node[key]
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise ranges.refuse(key, MANY, given)
        for each in given:
            name, words = _row(key, each, MANY)
            if name in rows:
                raise OptionError(f"{key}: {name} is there twice")
            rows[name], roles[name] = words, role
    return rows, roles


def _row(key: str, given: object, allowed: str) -> tuple[str, Words]:
    if isinstance(given, str) and given:
        given = {given: [f"selector={given}"]}
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ranges.refuse(key, allowed, given)
    ((name, words),) = by_name(key, given).items()
    return name, read_words(f"{key}.{name}", words)


def _cells(nodes: Mapping[str, Any], target: float | None) -> dict[str, Regime]:
    known = ("label", "axis", "words", "bounds", "target", "rows", "family", "oracle")
    found = {}
    for name, value in nodes.items():
        where, node = f"cells.{name}", mapping(f"cells.{name}", value)
        if strange := sorted(set(node) - set(known)):
            raise unknown(where, strange[0], known)
        if "words" not in node:
            raise OptionError(f"{where}.words is missing")
        for key in ("label", "axis", "family"):
            ranges.text(f"{where}.{key}", node.get(key), optional=True)
        ranges.number(f"{where}.target", node.get("target"), "(-inf, inf)", optional=True)
        bounds = by_name(f"{where}.bounds", node.get("bounds") or {})
        found[name] = Regime(
            name,
            node.get("label") or name,
            node.get("axis") or "",
            read_words(f"{where}.words", node["words"]),
            {bound: read_words(f"{where}.bounds.{bound}", words) for bound, words in bounds.items()},
            node.get("target", target),
            node.get("rows"),
            node.get("family") or name,
            node.get("oracle"),
        )
    if not found:
        raise ranges.refuse("cells", "one cell or more", nodes)
    labels = Counter(cell.label for cell in found.values())
    if twice := next((cell for cell in found.values() if labels[cell.label] > 1), None):
        raise ranges.refuse(f"cells.{twice.name}.label", "a text that no other cell has", twice.label)
    return found
