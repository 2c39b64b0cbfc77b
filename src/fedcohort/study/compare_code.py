"""What `fedcohort study check` does: compare the code that computed a study's rows with today's, by reference runs.

`behaviour.py` explains the reference run and what it can tell.
"""

from collections.abc import Sequence
from contextlib import closing

from fedcohort.record import provenance
from fedcohort.study import behaviour
from fedcohort.study.engine import Work
from fedcohort.study.places import Place, merge
from fedcohort.study.progress import progress_of, settle
from fedcohort.study.results import DONE, Key
from fedcohort.study.tasks import Outcome, Task, run_tasks

SAVED = 50  # reference runs after which the results are written
GROUP = ("config_hash", "budget", "commit", "dirty")
Runs = list[tuple[Place, int]]


def compare(work: Work, places: Sequence[Place], seeds: Sequence[int]) -> None:
    """Repeat the first rounds with today's code, once for each condition and commit, and note what differs.

    A condition is a config hash with its budget, in whichever cells it is. Rows that were compared with the present
    commit before are not repeated.
    """
    commit, dirty = provenance.commit()
    groups = list_groups(work, places, seeds)
    work.say(f"{len(groups)} reference runs of {behaviour.ROUNDS} rounds to do")
    tasks = [_reference(work, *runs[0]) for runs in groups]
    try:
        with closing(run_tasks(tasks, work.launch)) as ended:
            for number, (position, outcome) in enumerate(ended, 1):
                place, seed = groups[position][0]
                keys = [each.key(other) for each, other in groups[position]]
                result = _note(work, keys, outcome, f"{commit}{' with changes' * dirty}")
                work.say(f"[{number}/{len(groups)}] {place.cell} {place.row} seed {seed}: {result}")
                if number % SAVED == 0:
                    work.found.save()
    finally:
        work.found.save()


def list_groups(work: Work, places: Sequence[Place], seeds: Sequence[int]) -> list[Runs]:
    """List the runs that are done and not compared with the present commit, by condition and commit."""
    at = settle(progress_of(places, seeds, work.found, work.configs), work.found, work.identity)
    commit, dirty = provenance.commit()
    groups: dict[tuple[object, ...], Runs] = {}
    for place, seed in at.runs:
        key = place.key(seed)
        if at.how[key] == DONE and (dirty or work.found.rows[key]["compared"] != commit):
            groups.setdefault(tuple(work.found.rows[key][name] for name in GROUP), []).append((place, seed))
    return list(groups.values())


def _reference(work: Work, place: Place, seed: int) -> Task:
    rounds = min(behaviour.ROUNDS, work.found.rows[place.key(seed)]["rounds"])
    words = merge(place.words, (f"rounds={rounds}",))
    return Task(words, seed, work.configs, work.logs, work.study.metric, keep=False, resume=False)


def _note(work: Work, keys: Sequence[Key], outcome: Outcome, compared: str) -> str:
    """Note in the rows of a group how the first of them compares with the reference run, and describe it."""
    if outcome.curve is None:
        return f"not compared, {outcome.status}: {outcome.reason}"
    then = work.found.rows[keys[0]]["behaviour"], work.found.curves[keys[0]]
    differs = behaviour.difference(then, (outcome.facts["behaviour"], outcome.curve))
    for key in keys:
        work.found.rows[key] |= {"compared": compared, "differs": differs}
    return f"differs in {differs}" if differs else "the same"
