"""A study, from its folder studies/<name> with a study.yaml: where does selection pay?

fedcohort study run NAME [seeds=0,1 cells=a,b selectors=c,d n_jobs=1 launcher=local wait=true keep_runs=false again=...]
    do the runs that are missing; the words are checked before the first, each result is written down at once,
    and a run that is there is not done again. A word of configs/selector that study.yaml doesn't name is your own:
    selectors=mine adds it.
fedcohort study status NAME [seeds= cells= selectors=]
    what is done, missing, refused and why, failed; how long the rest may take
fedcohort study check NAME [seeds= cells= selectors= n_jobs=1]
    repeat the first 8 rounds of each condition with today's code, once for each commit that has rows of it, and note
    which rows were computed by code that behaves differently; pages mark these rows
fedcohort study tune NAME [selectors= n_jobs=1]
    the same number of trials for each selector that has a space in study.yaml, by Optuna, on seeds that the study
    doesn't use; what it finds is in tuned.yaml, and the rows <name>_tuned of the study have it
fedcohort study report NAME
    README.md, report.html, map.png, ranks.png and the tables as .csv and .tex, from what is there; runs whose config is
    another one now are left out, and named. studies/README.md has the regimes of all studies. A study whose study.yaml
    has `of` is a leaderboard: it has no runs, and ranks the selectors of other studies.

seeds=null           those of study.yaml
cells=null           all
selectors=null       all; the baseline and the bounds are always run with them
n_jobs=1             jobs at the same time
launcher=local       local: processes of this machine; slurm: an array on the cluster; or another launcher of Hydra that
                     is installed. hydra.launcher.OPTION=VALUE sets its options, say hydra.launcher.partition=gpu
wait=true            false, with launcher=slurm: submit the jobs and return. `study status` and a second `study run`
                     write the results of the jobs that have ended
keep_runs=false      true keeps the folders of the runs, in logs/studies/<name>/runs
again=false          true runs again what another commit computed, or code that was not committed: after a fix. The
                     code must be committed. If the command is interrupted, repeat it and it continues. changed runs
                     again what `check` found to be computed by code that behaves differently.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fedcohort import ranges
from fedcohort.errors import OptionError
from fedcohort.host.interrupt import interrupts
from fedcohort.host.lock import is_held
from fedcohort.jobs.launch import Launch
from fedcohort.startup.options import unknown
from fedcohort.study import compare_code, engine, leaderboard, own_rows, places, progress, results, session
from fedcohort.study.checks import read_seeds
from fedcohort.study.definition import NAME, Study, load

VERBS = {  # what each takes
    "run": ("seeds", "cells", "selectors", "n_jobs", "launcher", "wait", "keep_runs", "again"),
    "status": ("seeds", "cells", "selectors"),
    "check": ("seeds", "cells", "selectors", "n_jobs", "launcher"),
    "tune": ("selectors", "n_jobs", "launcher"),
    "report": (),
}
STUDIES, LOGS = Path("studies"), Path("logs/studies")


@dataclass(frozen=True)
class Options:
    """The options of the command, as the module explains them; None stands for null."""

    seeds: str | None = None
    cells: str | None = None
    selectors: str | None = None
    n_jobs: str | None = "1"
    launcher: str | None = "local"
    wait: str | None = "true"
    keep_runs: str | None = "false"
    again: str | None = "false"
    hydra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.n_jobs or "").isdigit() or self.n_jobs == "0":
            raise ranges.refuse("n_jobs", "an integer in [1, inf)", self.n_jobs)
        ranges.choice("wait", self.wait, "true", "false")
        ranges.choice("keep_runs", self.keep_runs, "true", "false")
        ranges.choice("again", self.again, "true", "false", "changed")

    def launch(self) -> Launch:
        """Return how jobs are started."""
        return Launch(self.launcher or "local", int(self.n_jobs or 1), self.wait == "true", self.hydra)

    def seeds_of(self, study: Study) -> Sequence[int]:
        """The seeds typed. Raises `OptionError` for those that the study tunes on."""
        if self.seeds is None:
            return study.seeds
        parts = _split(self.seeds) or []
        if not all(part.isdigit() for part in parts):
            raise ranges.refuse("seeds", "integers in [0, inf), as seeds=0,1,2", self.seeds)
        seeds = read_seeds("seeds", [int(part) for part in parts])
        if study.space is not None and (spent := set(seeds) & set(study.space.seeds)):
            raise ranges.refuse("seeds", f"none that is tuned on, as {min(spent)} is", self.seeds)
        return seeds


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part for part in text.strip("[]").split(",") if part]


def _names(option: str, text: str | None) -> list[str] | None:
    """The names typed, None for all. Raises `OptionError` where there is none."""
    found = _split(text)
    if found == []:
        raise ranges.refuse(option, f"one name or more, as {option}=a,b, or null for all", text)
    return found


def parse(words: Sequence[str]) -> tuple[str, str, Options]:
    """The verb, the study's name and the options that were typed. Raises `OptionError`."""
    if len(words) < 2 or words[0] not in VERBS or "=" in words[1]:
        raise OptionError(f"type fedcohort study VERB NAME, where VERB is one of {', '.join(VERBS)}")
    known = [each.name for each in fields(Options) if each.name != "hydra"]
    hydra = tuple(word for word in words[2:] if word.startswith("hydra.launcher."))
    typed: dict[str, Any] = {"hydra": hydra}
    for word in words[2:]:
        if word in hydra:
            continue
        name, equals, value = word.partition("=")
        if not equals:
            raise OptionError(f"can't read {word!r}: type name=value, where name is one of {', '.join(known)}")
        if name not in known:
            raise unknown("", name, known)
        if name not in VERBS[words[0]]:
            there = ", ".join(VERBS[words[0]]) or "no options"
            raise OptionError(f"fedcohort study {words[0]} takes {there}, got {word}")
        typed[name] = None if value == "null" else value
    return words[0], words[1], Options(**typed)


def main(words: Sequence[str]) -> int:
    """The command; raises what `in_one_line` puts in one line. Returns 1 where a run has failed."""
    verb, name, options = parse(words)
    ranges.identifier("the name of a study", name)
    configs = Path.cwd() / "configs"
    rows = _names("selectors", options.selectors)
    if leaderboard.is_one(STUDIES / name):
        return _report_leaderboard(verb, name, configs)
    study = places.with_own(load(STUDIES / name), rows, configs)
    if verb == "tune":
        return _tune(study, rows, configs, options.launch())
    if verb == "report":
        from fedcohort.study import overview, report  # noqa: PLC0415 - scipy

        _list(report.write(study, _set_apart(study, results.load(study), configs)))
        merged = results.load(study, LOGS / name)
        if merged.own:  # git keeps the study's page, and ignores the one with the user's own methods
            (LOGS / name).mkdir(parents=True, exist_ok=True)
            _list(report.write(replace(study, folder=LOGS / name), _set_apart(study, merged, configs)))
            _list_ranks(study, merged)
        return _list([overview.write(STUDIES)])
    seeds = options.seeds_of(study)
    wanted = places.list_places(study, _names("cells", options.cells), rows)
    logs = (LOGS / name).absolute()
    exclusive = verb != "status" or not is_held(logs / session.LOCK)  # or the command at work writes the results
    with _training(logs) if exclusive else nullcontext():
        found = results.load(study, logs)  # once no other process writes to it
        keep, launch = options.keep_runs == "true", options.launch()
        work = engine.Work(study, found, configs, logs, keep, _say, options.again or "false", launch)
        if verb == "run":
            work.run(wanted, seeds)
        if verb == "check":
            compare_code.compare(work, wanted, seeds)
        pending = work.collect(wanted, seeds) if exclusive else []
    at = progress.progress_of(wanted, seeds, found, configs)
    if at.count(progress.CHANGED):
        _say(progress.COMPOSING)
        with session.quietly():
            at = progress.settle(at, found, work.identity)
    _say("\n".join([progress.describe(study, at, found), *pending]))
    _list_ranks(study, found)
    return 1 if verb == "run" and at.count(results.FAILED) else 0


def _tune(study: Study, rows: Sequence[str] | None, configs: Path, launch: Launch) -> int:
    if study.space is None:
        raise OptionError(f"{study.folder / NAME} says nothing of `tune`: what may be tuned, and on which seeds")
    from fedcohort.study import tune  # noqa: PLC0415 - Optuna

    known = [*study.space.rows]
    for row in rows or ():
        ranges.choice("selectors", row, *known)
    logs = (LOGS / study.name).absolute()
    with _training(logs):
        tune.Tuning(study, study.space, configs, logs, _say, launch).run(rows or known)
    return 0


@contextmanager
def _training(logs: Path) -> Iterator[None]:
    """Be the only process at work on the study, say little, and leave with the signal's code where one comes."""
    with session.alone(logs), session.quietly():
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            _say("stopped; the same command goes on")
            raise SystemExit(interrupts.code or 1) from None


def _set_apart(study: Study, found: results.Results, configs: Path) -> results.Results:
    """Leave out, for a page, the runs of another config than the study's now."""
    work = engine.Work(study, found, configs, (LOGS / study.name).absolute(), False, _say)
    with session.quietly():
        return progress.set_apart(study, found, configs, work.identity, _say)


def _report_leaderboard(verb: str, name: str, configs: Path) -> int:
    if verb != "report":
        known = leaderboard.load(STUDIES / name)
        raise OptionError(f"{name} has no runs of its own, it ranks those of {', '.join(known.studies)}: {verb} these")
    from fedcohort.study import leaderboard_page  # noqa: PLC0415 - scipy

    known = leaderboard.load(STUDIES / name, lambda study: _set_apart(study, results.load(study), configs))
    files = leaderboard_page.write(known)
    if any((LOGS / study / results.RESULTS).exists() for study in known.studies):  # with the user's own methods
        merged = leaderboard.load(
            STUDIES / name, lambda study: _set_apart(study, results.load(study, LOGS / study.name), configs)
        )
        (LOGS / name).mkdir(parents=True, exist_ok=True)
        files += leaderboard_page.write(replace(merged, whole=replace(merged.whole, folder=LOGS / name)))
    return _list(files)


def _list_ranks(study: Study, found: results.Results) -> None:
    for line in own_rows.describe_ranks(study, found):
        _say(line)


def _list(files: Sequence[Path]) -> int:
    sys.stdout.write("".join(f"{path}\n" for path in files))
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
