"""Checks of what a study's yaml says, by the names of its options."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.startup.components import TARGET
from fedcohort.startup.options import unknown

WIN = {"alpha": 0.05, "least": 0.005, "equal": 0.01, "seeds": 3, "worth": 0.01}


def key_of(word: str) -> str:
    """The option that a word sets."""
    return word.lstrip("+~").partition("=")[0]


@contextmanager
def named(path: Path, needed: Sequence[str]) -> Iterator[None]:
    """Put the file's name before what is wrong with it; needed: the options that it must have."""
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error
    except (OSError, TypeError, ValueError) as error:  # it is a list, or a single value
        raise OptionError(f"{path} must hold options by name ({', '.join(needed)})") from error


def check_keys(given: Mapping[str, Any], needed: Sequence[str], known: Sequence[str]) -> None:
    """Raise `OptionError` for an option that there isn't, and for one that is missing."""
    for key in given:
        if key not in known:
            raise unknown("", str(key), known)
    for key in needed:
        if key not in given:
            raise OptionError(f"{key} is missing")


def mapping(option: str, value: object) -> dict[str, Any]:
    """Check options by name. Raises `OptionError`."""
    if not isinstance(value, Mapping):
        raise ranges.refuse(option, "options by name", value)
    return {str(key): each for key, each in value.items()}


def by_name(option: str, value: object) -> dict[str, Any]:
    """Check options by name where files are called after the names. Raises `OptionError`."""
    found = mapping(option, value)
    for name in found:
        ranges.identifier(f"{option}: the name", name)
    return found


def read_win(value: object) -> dict[str, Any]:
    """Read what counts as an answer, as `Study` has it. Raises `OptionError`."""
    win = {**WIN, **mapping("win", value)}
    if strange := sorted(set(win) - set(WIN)):
        raise unknown("win", strange[0], tuple(WIN))
    ranges.number("win.alpha", win["alpha"], "(0, 1)")
    ranges.number("win.least", win["least"], "[0, inf)")
    ranges.number("win.equal", win["equal"], "(0, inf)")
    ranges.integer("win.seeds", win["seeds"], "[2, inf)")
    ranges.number("win.worth", win["worth"], "(0, inf)")
    return {"enough": win.pop("seeds"), **win}


def read_seeds(option: str, value: object) -> tuple[int, ...]:
    """Check seeds, one at least and none twice. Raises `OptionError`."""
    ranges.integers(option, value, "[0, inf)")
    seeds: Any = value
    if not seeds or len(set(seeds)) < len(seeds):
        raise ranges.refuse(option, "a list of one or more seeds, none twice", value)
    return tuple(seeds)


def read_few(value: object, rows: Sequence[str], n_seeds: int) -> dict[str, int]:
    """Check `few`: how many seeds a row is asked for; rows: those that may have fewer. Raises `OptionError`."""
    few = mapping("few", value)
    for row, n in few.items():
        ranges.choice("few", row, *rows)
        ranges.integer(f"few.{row}", n, f"[1, {n_seeds}]")
    return few


def read_variants(value: object, rows: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Check `variants`: by a name, two methods or more; rows: the methods. Raises `OptionError`."""
    found = by_name("variants", value)
    seen = set[str]()
    for name, of in found.items():
        ranges.words(f"variants.{name}", of, *rows)
        if len(of) == 1 or seen & set(of):
            raise ranges.refuse(f"variants.{name}", "a list of two methods or more, each in one list", of)
        seen |= set(of)
    return {name: tuple(of) for name, of in found.items()}


def check_heard(option: str, words: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Check that no word is one that every row sets anew; rows: their words. Raises `OptionError`."""
    always = set.intersection(*({key_of(word) for word in own} for own in rows.values()))
    for word in words:
        if key_of(word) in always:
            raise OptionError(f"{option}: {word} has no effect, as every row has its own {key_of(word)}: leave it out")


def read_words(option: str, value: object) -> tuple[str, ...]:
    """Check overrides as they are typed behind train.py; the seed is the study's own. Raises `OptionError`."""
    ranges.texts(option, value)
    words: Any = value
    for word in words:
        key, equals, _ = word.partition("=")
        if not equals or not key:
            raise ranges.refuse(option, "a list of words as they are typed, name=value", word)
        if TARGET in word:
            raise OptionError(
                f"{option}: {word} names code, and a study is data: write the class into configs/<group>/<name>.yaml, "
                "and choose it with <group>=<name>"
            )
        if key in ("seed", "resume", "paths.logs"):
            raise OptionError(f"{option}: {key} is the study's own: leave {word} out")
    return tuple(words)
