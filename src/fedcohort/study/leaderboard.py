"""A leaderboard, `studies/<name>/study.yaml` with `of`: other studies' selectors over all of their regimes.

    of                     what comes before the labels of a study's regimes: {regimes_digits: digits}
    title, question, win   as a study has them (`definition.py`)

Nothing is trained for it: it reads the results that the studies have. They have one baseline, and metrics of one unit.
A regime that two studies have, the same federation for the same number of rounds, is the first one's alone.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.metric import unit_of
from fedcohort.startup.compose import file_of
from fedcohort.study import definition, results
from fedcohort.study.checks import by_name, check_keys, named, read_win
from fedcohort.study.definition import NAME, Regime, Study
from fedcohort.study.results import Results

NEEDED = ("title", "question", "of")


@dataclass(frozen=True)
class Leaderboard:
    """Several studies as one.

    Attributes:
        whole: all of their regimes, named `<study>/<regime>`, and all of their rows.
        found: the results under these names.
        groups: of each regime, its study.
        twice: of each regime that is left out, as an earlier study has it, that study's.
        called: what comes before the labels of each study's regimes.
        studies: by name.
        of: their results, by name.
    """

    whole: Study
    found: Results
    groups: Mapping[str, str]
    twice: Mapping[str, str]
    called: Mapping[str, str]
    studies: Mapping[str, Study]
    of: Mapping[str, Results]


def is_one(folder: Path) -> bool:
    """Whether the study in `folder` is a leaderboard; False where it can't be read: `definition.load` says why."""
    try:
        return "of" in file_of(folder / NAME)
    except (OptionError, OSError, TypeError, ValueError):
        return False


def load(folder: Path, read: Callable[[Study], Results] = results.load) -> Leaderboard:
    """Read the leaderboard, and the studies beside it; `read` has their results. Raises `OptionError`, `DataError`."""
    with named(folder / NAME, NEEDED):
        given = file_of(folder / NAME)
        check_keys(given, NEEDED, (*NEEDED, "win"))
        for key in ("title", "question"):
            ranges.text(key, given[key])
        called = by_name("of", given["of"])
        for name, label in called.items():
            ranges.text(f"of.{name}", label)
        if not called:
            raise ranges.refuse("of", "one study or more, as {regimes_digits: digits}", given["of"])
        win = read_win(given.get("win") or {})
    studies = {name: definition.load(folder.parent / name) for name in called}
    first = next(iter(studies.values()))
    for name, study in studies.items():
        if study.baseline != first.baseline or unit_of(study.metric) != unit_of(first.metric):
            raise OptionError(
                f"{folder / NAME}: of.{name} must have the baseline and the unit of {first.name}, {first.baseline} and "
                f"that of {first.metric}, got {study.baseline} and {study.metric}"
            )
    found = {name: read(study) for name, study in studies.items()}
    studies = {name: results.with_roles(study, found[name]) for name, study in studies.items()}
    twice = _find_twice(studies, found)
    whole = Study(
        folder=folder,
        title=given["title"],
        question=given["question"],
        common=(),
        baseline=first.baseline,
        words={row: words for study in studies.values() for row, words in study.words.items()},
        roles={row: role for study in studies.values() for row, role in study.roles.items()},
        cells={
            f"{name}/{cell}": _call(regime, f"{name}/{cell}", called[name])
            for name, study in studies.items()
            for cell, regime in study.cells.items()
            if f"{name}/{cell}" not in twice
        },
        seeds=sorted({seed for study in studies.values() for seed in study.seeds}),
        metric=" or ".join(dict.fromkeys(study.metric for study in studies.values())),
        late=first.late,
        **win,
        variants=_join_variants(studies.values()),
        tuned={f"{row} in {name}": each for name, study in studies.items() for row, each in study.tuned.items()},
    )
    groups = {cell: cell.partition("/")[0] for cell in whole.cells}
    return Leaderboard(whole, _join(folder, found), groups, twice, called, studies, found)


def _find_twice(studies: Mapping[str, Study], found: Mapping[str, Results]) -> dict[str, str]:
    """Return the regimes whose federation an earlier study has, and that one's: the baseline's runs are the same."""
    first: dict[tuple[str, str], str] = {}
    twice = {}
    for name, study in studies.items():
        for cell, federation in results.federations(study, found[name]).items():
            place = f"{name}/{cell}"
            earlier = first.setdefault((federation, study.metric), place)
            if earlier.partition("/")[0] != name:
                twice[place] = earlier
    return twice


def _join_variants(studies: Iterable[Study]) -> dict[str, list[str]]:
    """Put the variants of all studies together, by their names."""
    joined: dict[str, list[str]] = {}
    for name, rows in (each for study in studies for each in study.variants.items()):
        joined[name] = list(dict.fromkeys([*joined.get(name, ()), *rows]))
    return joined


def _call(regime: Regime, name: str, called: str) -> Regime:
    study = name.partition("/")[0]
    return replace(regime, name=name, label=f"{called}: {regime.label}", family=f"{study}/{regime.family}")


def _join(folder: Path, found: Mapping[str, Results]) -> Results:
    """Put the results together, each under its study's name; a late mean is of its own study's rounds."""
    whole = Results(folder)
    for name, of in found.items():
        for (cell, row, seed), facts in of.rows.items():
            whole.rows[f"{name}/{cell}", row, seed] = {**facts, "cell": f"{name}/{cell}"}
        whole.changed |= {(f"{name}/{cell}", row, seed) for cell, row, seed in of.changed}
    return whole
