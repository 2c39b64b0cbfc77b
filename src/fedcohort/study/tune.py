"""What `fedcohort study tune` does: as many trials for each row that has a space, on seeds that the study doesn't use.

The first trial is the row as it is, the others are Optuna's (TPE, with a seed of its own for each row). Each is written
into tuned.yaml at once: the same command goes on, and with more trials in study.yaml does those that are more. A trial
that was refused or has failed is known, too, and isn't done again until it is removed from that file.
"""

import hashlib
import json
import logging
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fedcohort import rng
from fedcohort.errors import OptionError
from fedcohort.jobs.launch import Launch
from fedcohort.record import provenance
from fedcohort.record.folder import write_atomically
from fedcohort.startup.options import unknown
from fedcohort.study import space
from fedcohort.study.checks import named
from fedcohort.study.definition import NAME as STUDY
from fedcohort.study.definition import Study, Words
from fedcohort.study.engine import Say
from fedcohort.study.measure import LATE_SHARE, summarise
from fedcohort.study.places import LEAN, clock_of, merge
from fedcohort.study.results import DONE
from fedcohort.study.space import Choice, Range, Space, spell
from fedcohort.study.tasks import Task, composed, run_tasks

EXTRA = 'pip install --constraint constraints.txt --editable ".[sweep]"'
Trial = dict[str, Any]  # as tuned.yaml has it


@dataclass(frozen=True)
class Tuning:
    """A search of all rows that have a space.

    Attributes:
        configs: the folder of the groups.
        logs: where run folders are made.
        say: is told a line a trial.
    """

    study: Study
    space: Space
    configs: Path
    logs: Path
    say: Say
    launch: Launch = field(default_factory=Launch)

    def run(self, rows: Sequence[str]) -> None:
        """Search for each row, one after the other; the runs of a trial are jobs of a sweep."""
        with named(self.study.folder / STUDY, ()):  # what is wrong is said before the first trial
            defaults = {row: self._defaults(row, self.space.rows[row]) for row in rows}
        for row in rows:
            self._search(row, defaults[row])

    def _search(self, row: str, defaults: Mapping[str, Any]) -> None:
        optuna = import_optuna()
        options = self.space.rows[row]
        stamp = self._stamp(row)
        found = space.load_all(self.study.folder).get(row, {})
        there: list[Trial] = [*found["tried"], *found["spare"]] if found.get("stamp") == stamp else []
        known = {tuple(each["words"]): each for each in there}
        sampler = optuna.samplers.TPESampler(seed=rng.key(0, f"tune/{row}") % 2**32)
        search = optuna.create_study(direction="maximize", sampler=sampler)
        search.enqueue_trial(defaults)
        tried: list[Trial] = []
        asked = set[Words]()
        trials = self.space.trials_of(row)
        while len(asked) < trials:
            trial = search.ask()
            words = _spell_words({name: _suggest(trial, name, each) for name, each in options.items()})
            is_new, is_again = words not in known, words in asked
            if is_new:
                known[words] = self._try(row, words)
            value = known[words]["value"]
            search.tell(trial, *([value] if value is not None else [None, optuna.trial.TrialState.FAIL]))
            if is_again:  # that is no trial: of few combinations the next is one that wasn't asked for
                if (other := _find_other(options, asked)) is not None:
                    search.enqueue_trial(other)
                continue
            asked.add(words)
            tried.append(known[words])
            if is_new:  # while known ones are replayed the file stays as it is
                self._write(row, stamp, tried, known)
            self.say(f"{row} [{len(tried)}/{trials}] {' '.join(words)}: {_spell_value(known[words])}")
        self._write(row, stamp, tried, known)
        if lost := sum(each["value"] is None for each in tried):
            told = f"{row}: {lost} of {len(tried)} trials have no value and aren't done again"
            self.say(f"{told}: remove them from {self.study.folder / space.NAME} to try them anew")

    def _defaults(self, row: str, options: Mapping[str, Range]) -> dict[str, Any]:
        """Return the row's own options. Raises `OptionError` where its space doesn't hold them."""
        config = composed(self._tasks(row, ())[0]).config
        found = {}
        for name, each in options.items():
            value: Any = config
            where = "the config"
            for part in name.split("."):
                known = value if isinstance(value, Mapping) else {}
                if part not in known:
                    raise unknown(f"tune.space.{row}: {where}", part, list(known))
                value, where = known[part], part
            if not each.holds(value):
                raise OptionError(
                    f"tune.space.{row}.{name} must hold the default, {spell(value)}: it is the first trial"
                )
            found[name] = value
        return found

    def _tasks(self, row: str, words: Words) -> list[Task]:
        study, own = self.study, self.study.words.get(row, (f"selector={row}",))
        return [
            Task(
                merge(LEAN, study.common, study.cells[cell].words, own, words),
                seed,
                self.configs,
                self.logs,
                self.space.metric,
                False,
            )
            for cell in self.space.cells
            for seed in self.space.seeds
        ]

    def _try(self, row: str, words: Words) -> Trial:
        """Do the trial: its value is the mean of its runs, None where one of them was refused or has failed."""
        tasks = self._tasks(row, words)
        outcomes = [outcome for _, outcome in sorted(run_tasks(tasks, self.launch), key=lambda each: each[0])]
        commit, dirty = provenance.commit()
        code = f"{commit[:10]}{' with uncommitted changes' if dirty else ''}"
        trial: Trial = {"words": words, "value": None, "commit": code}
        if lost := next((each for each in outcomes if each.status != DONE), None):
            return {**trial, "reason": f"{lost.status}: {lost.reason}"}
        late = [
            summarise(each.curve, self.study.late, None, clock_of(task.words))["late"]
            for task, each in zip(tasks, outcomes, strict=True)
            if each.curve is not None
        ]
        value = float(np.mean(late))
        return {**trial, "value": value} if math.isfinite(value) else {**trial, "reason": f"its mean is {value}"}

    def _stamp(self, row: str) -> str:
        """Return what tells trials of one search from those of another: all but how many there are."""
        tasks = self._tasks(row, ())
        asked = [[task.words, task.seed] for task in tasks]
        ranges_ = {name: asdict(each) for name, each in self.space.rows[row].items()}
        timed = [LATE_SHARE] if any(clock_of(task.words) for task in tasks) else []
        text = json.dumps([asked, ranges_, self.space.metric, self.study.late, *timed])
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def _write(self, row: str, stamp: str, tried: Sequence[Trial], known: Mapping[Words, Trial]) -> None:
        done = [each for each in tried if each["value"] is not None]
        best: Trial = max(done, key=lambda each: each["value"], default={"words": [], "value": math.nan})
        first = tried[0]["value"]
        asked = {tuple(each["words"]) for each in tried}
        facts = {
            "trials": self.space.trials_of(row),
            "seeds": list(self.space.seeds),
            "cells": list(self.space.cells),
            "metric": self.space.metric,
            "words": list(best["words"]),
            "value": best["value"],
            "default": math.nan if first is None else first,
            "stamp": stamp,
            "tried": [_copy(each) for each in tried],
            "spare": [_copy(each) for words, each in known.items() if words not in asked],
        }
        whole = space.load_all(self.study.folder) | {row: facts}
        head = "# Written by fedcohort study tune; the rows <name>_tuned of the study have these words.\n"
        text = yaml.safe_dump(whole, sort_keys=False, width=110, default_flow_style=None)
        write_atomically(self.study.folder / space.NAME, head + text)


def import_optuna() -> Any:  # noqa: ANN401 - it has no types, and is imported late
    """Return Optuna, quiet. Raises `OptionError` where it isn't installed."""
    try:
        import optuna
    except ImportError as error:
        raise OptionError(f"fedcohort study tune needs Optuna: {EXTRA}") from error
    optuna.logging.set_verbosity(logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # enqueue_trial, since 2.0
    return optuna


def _spell_words(values: Mapping[str, object]) -> Words:
    return tuple(f"{name}={spell(value)}" for name, value in values.items())


def _find_other(options: Mapping[str, Range], asked: Collection[Words]) -> dict[str, object] | None:
    """Return the first combination that wasn't asked for; None where an option has any number of values."""
    values = [each.values for each in options.values() if each.values is not None]
    if len(values) < len(options):
        return None
    combinations = (dict(zip(options, each, strict=True)) for each in product(*values))
    return next((each for each in combinations if _spell_words(each) not in asked), None)


def _suggest(trial: Any, name: str, each: Range) -> object:  # noqa: ANN401 - Optuna's
    if isinstance(each, Choice):
        return trial.suggest_categorical(name, list(each.values))
    suggest = trial.suggest_int if each.whole else trial.suggest_float
    return suggest(name, each.low, each.high, log=each.log)


def _spell_value(trial: Trial) -> str:
    return f"no value, {trial.get('reason', 'failed')}" if trial["value"] is None else f"{trial['value']:.4f}"


def _copy(trial: Trial) -> Trial:
    """A trial as it is written: one that the search asked for twice stands there twice, and no reference to it."""
    return {**trial, "words": list(trial["words"])}
