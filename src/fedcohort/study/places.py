"""The places of a study: each row of selectors in each cell, with the words of its runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.errors import OptionError
from fedcohort.study.checks import key_of
from fedcohort.study.definition import BOUND, Study, Words

CLOCK = "until.virtual_s"  # the option that ends runs by a clock
LEAN = (  # a run costs its rounds: no figures, no tracker, no evaluation of all clients
    *("logger=none", "callback.figures=null", "callback.summary=null", "callback.progress=null"),
    *("eval.clients_every=0", "checkpoint.every_s=30"),
)


@dataclass(frozen=True)
class Place:
    """A row of the study in a cell of it; with a seed it is one run.

    Attributes:
        row: a selector's name, or that of a bound.
        words: of its runs, without the seed.
        seeds: the only ones that it is asked for, None for any.
    """

    cell: str
    row: str
    words: Words
    seeds: tuple[int, ...] | None = None

    def key(self, seed: int) -> tuple[str, str, int]:
        return self.cell, self.row, seed


def with_own(study: Study, selectors: Sequence[str] | None, configs: Path) -> Study:
    """Add the words of configs/selector that `study.yaml` doesn't name. Raises `OptionError` for unknown ones."""
    bounds = dict.fromkeys(BOUND + bound for cell in study.cells.values() for bound in cell.bounds)
    known = sorted(path.stem for path in (configs / "selector").glob("*.yaml"))
    own = [name for name in selectors or () if name not in study.words and name not in bounds]
    for name in own:
        if name not in known:
            rows = ", ".join([*study.words, *bounds, *(word for word in known if word not in study.words)])
            raise OptionError(f"selectors must be some of {rows}, got {name!r}")
    return replace(study, words={**study.words, **{name: (f"selector={name}",) for name in own}})


def list_places(study: Study, cells: Sequence[str] | None = None, rows: Sequence[str] | None = None) -> list[Place]:
    """List the places of the cells and rows that are named, None for all, in the study's order.

    The baseline and the bounds are always among them: nothing is said of a row without them. A row that `rows` names is
    asked for in each of the cells and on any seed, whatever the cells' own rows and `few` say. Raises `OptionError`.
    """
    for name in cells or ():
        if name not in study.cells:
            raise OptionError(f"cells must be some of {', '.join(study.cells)}, got {name!r}")
    found = []
    for cell in (study.cells[name] for name in study.cells if cells is None or name in cells):
        for row, words in study.words.items():
            is_asked = study.asks(cell.name, row) if rows is None else row in rows or row == study.baseline
            if is_asked:
                few = tuple(study.seeds_of(row)) if row in study.few and rows is None else None
                found.append(Place(cell.name, row, merge(LEAN, study.common, cell.words, words), few))
        for bound, words in cell.bounds.items():
            base = study.words[study.baseline]
            found.append(Place(cell.name, BOUND + bound, merge(LEAN, study.common, base, words)))
    return found


def merge(*parts: Iterable[str]) -> Words:
    """Put words together; of those with one key the last counts."""
    words: dict[str, str] = {}
    for word in (word for part in parts for word in part):
        words.pop(key_of(word), None)
        words[key_of(word)] = word
    return tuple(words.values())


def clock_of(words: Iterable[str]) -> float | None:
    """Return the virtual seconds at which runs of these words end, None where no clock ends them."""
    ends = [word.partition("=")[2] for word in words if word.lstrip("+").startswith(f"{CLOCK}=")]
    return float(ends[-1]) if ends and ends[-1] != "null" else None


def is_early(words: str, virtual_s: float) -> bool:
    """Whether a run of these words, as a result has them, had all of its rounds before its clock ended."""
    clock = clock_of(words.split())
    return clock is not None and virtual_s < clock
