"""Compare the code that computed a study's rows with today's code, by reference runs (`fedcohort study check`).

`behaviour.py` describes the reference run, and the limits of the comparison.
"""

from collections.abc import Sequence
from contextlib import closing

from fedcohort.record import provenance
from fedcohort.study import behaviour
from fedcohort.study.conditions import Condition, Key
from fedcohort.study.engine import Run, StudyRunner
from fedcohort.study.overrides import merge
from fedcohort.study.progress import progress_of, resolve_changes
from fedcohort.study.result_files import DONE
from fedcohort.study.tasks import Outcome, Task, run_tasks

SAVED = 50  # number of reference runs after which the results are saved
GROUP = ("config_hash", "budget", "commit", "dirty")


def compare_with_current_code(work: StudyRunner, conditions: Sequence[Condition], seeds: Sequence[int]) -> None:
    """Repeat the first rounds with today's code, once for each configuration and commit, and store the differences.

    Rows that were compared with the present commit before are left out.
    """
    commit, dirty = provenance.current_commit()
    groups = list_groups(work, conditions, seeds)
    work.say(f"{len(groups)} reference runs of {behaviour.ROUNDS} rounds to do")
    tasks = [_reference(work, *runs[0]) for runs in groups]
    try:
        with closing(run_tasks(tasks, work.launch)) as outcomes:
            for number, (position, outcome) in enumerate(outcomes, 1):
                condition, seed = groups[position][0]
                keys = [member.key(seed_of_member) for member, seed_of_member in groups[position]]
                result = _store_difference(work, keys, outcome, f"{commit}{' with changes' * dirty}")
                name = f"{condition.setting} {condition.method} seed {seed}"
                work.say(f"[{number}/{len(groups)}] {name}: {result}")
                if number % SAVED == 0:
                    work.results.save()
    finally:
        work.results.save()


def list_groups(work: StudyRunner, conditions: Sequence[Condition], seeds: Sequence[int]) -> list[list[Run]]:
    """Return the done runs that were not compared with the present commit, by configuration and commit."""
    rows = work.results.rows
    progress = resolve_changes(progress_of(conditions, seeds, work.results, work.configs), work.results, work.identity)
    commit, dirty = provenance.current_commit()
    groups: dict[tuple[object, ...], list[Run]] = {}
    for condition, seed in progress.runs:
        key = condition.key(seed)
        if progress.states[key] == DONE and (dirty or rows[key]["compared"] != commit):
            groups.setdefault(tuple(rows[key][name] for name in GROUP), []).append((condition, seed))
    return list(groups.values())


def _reference(work: StudyRunner, condition: Condition, seed: int) -> Task:
    rounds = min(behaviour.ROUNDS, work.results.rows[condition.key(seed)]["rounds"])
    overrides = merge(condition.overrides, (f"rounds={rounds}",))
    return Task(overrides, seed, work.configs, work.logs, work.study.metric, keep=False, resume=False)


def _store_difference(work: StudyRunner, keys: Sequence[Key], outcome: Outcome, compared: str) -> str:
    """Store in the rows of a group how the first of them compares with the reference run, and describe it."""
    if outcome.curve is None:
        return f"not compared, {outcome.status}: {outcome.reason}"
    earlier = work.results.rows[keys[0]]["behaviour"], work.results.curves[keys[0]]
    differs = behaviour.difference(earlier, (outcome.facts["behaviour"], outcome.curve))
    for key in keys:
        work.results.rows[key] |= {"compared": compared, "differs": differs}
    return f"differs in {differs}" if differs else "the same"
