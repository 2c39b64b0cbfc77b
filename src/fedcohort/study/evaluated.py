"""How many rounds of a study's runs are evaluated: the last `late` of them are the result, and there must be as many.

A mean over fewer is another quantity, and no page would tell. Where a clock ends the runs (`until.virtual_s`) their
late mean is over its time, and nothing is asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.results.matching.run import EVALUATED
from fedcohort.study.checks import key_of
from fedcohort.study.definition import Study
from fedcohort.study.places import Place

OWN = ("rounds", "experiment", "eval.every", "eval.clients_every", "until.virtual_s")  # options that decide how many


def decides(words: Sequence[str]) -> bool:
    """Whether a row of these words may have another number of evaluated rounds than its regime."""
    return any(key_of(word) in OWN for word in words)


def check(study: Study, place: Place, config: Mapping[str, Any]) -> None:
    """Check `late` against the rounds that a run of this composed config will evaluate.

    Raises `OptionError` that names the option, its value and its range.
    """
    if config["until"]["virtual_s"] is not None:
        return
    option = next((name for start, name in EVALUATED.items() if study.metric.startswith(start)), None)
    rounds, every = config["rounds"], config["eval"][option.partition(".")[2]] if option else 1
    there = rounds // every if every else 0
    how = f"rounds={rounds}" + (f" {option}={every}" if option else "")
    if not there:
        raise OptionError(f"{place.cell}, {place.row}: {how} measures {study.metric} in no round")
    if study.late is not None and study.late > there:
        allowed = f"an integer in [1, {there}], the evaluated rounds of {place.cell}, {place.row} ({how})"
        raise ranges.refuse("late", allowed, study.late)
