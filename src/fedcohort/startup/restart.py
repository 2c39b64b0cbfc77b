"""What a resume goes on from: the newest checkpoint, checked, and whether this process may go on with it at all.

resume=true: the newest one, with the code, the versions and the processes that wrote it. resume=previous: where the
newest is damaged, the one before it, too. resume=force: in spite of other code, versions and processes, too.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.errors import CheckpointError, DamagedCheckpoint
from fedcohort.lightning import checkpoint
from fedcohort.record import journal, manifest, provenance
from fedcohort.record.folder import RunFolder
from fedcohort.round import store
from fedcohort.round.budget import Spending, Spent

log = logging.getLogger("fedcohort")
FALLS_BACK, FORCE = ("previous", "force"), "force"


@dataclass(frozen=True)
class Restart:
    """What a run goes on from.

    Attributes:
        rounds: that are done, 0 where there is no checkpoint.
        forced: what is other than it was, None where nothing was forced.
        spending: what these rounds came to.
    """

    rounds: int = 0
    forced: Sequence[str] | None = None
    spending: Spending = field(default_factory=Spending)


def find(home: RunFolder, config_hash: str, resume: bool | str, now: provenance.Start) -> Restart:
    """Find the newest sound checkpoint of the run in `home`, from which the run resumes.

    The journal and the per-client tables must be sound up to its round, and so must all that the manifest has.

    now: what `provenance.this` says of this process. Raises `CheckpointError`.
    """
    manifest.check_all(home.path)
    there = [path for path in (home.checkpoint, home.previous) if path.exists()]
    if not there:
        return Restart()
    newest, *others = there
    chosen = newest
    try:
        found = usable(newest, config_hash)
    except DamagedCheckpoint as error:
        older = _older(others, config_hash)
        if older is None:
            left = "the one before it, too" if others else "there is none before it"
            raise CheckpointError(f"{error}; {left}: start afresh with resume=false") from error
        done = checkpoint.rounds_in(older)
        if resume not in FALLS_BACK:
            raise CheckpointError(
                f"{error}; the one before it, of round {done}, is whole: go on from there with resume=previous"
            ) from error
        log.warning("%s; going on from the one before it, of round %d", error, done)
        found, (chosen, *_) = older, others
    other = provenance.differences(found[checkpoint.OURS], now)
    if other and resume != FORCE:
        raise CheckpointError(
            f"{chosen} was written with something else, and would go on with other bits: {'; '.join(other)}. Go back "
            "to that, or go on all the same with resume=force, which summary.json and MLflow then say"
        )
    done = checkpoint.rounds_in(found)
    journal.check(home.path, done, _journal_in(found))
    if chosen != home.checkpoint:
        os.replace(chosen, home.checkpoint)
    for difference in other:
        log.warning("resume=force: %s", difference)
    return Restart(done, other if resume == FORCE else None, _spending(found, done))


def usable(path: Path, config_hash: str) -> dict[str, Any]:
    """The checkpoint, with what clients keep beside it checked as well. Raises `CheckpointError`."""
    found = checkpoint.load(path, config_hash)
    for state in found["callbacks"].values():
        if "clients" in state:
            store.check(path.parent, state["clients"])
    return found


def _journal_in(found: Mapping[str, Any]) -> str | None:
    """Return the journal's running digest at the checkpoint; None where no journal was kept, or by an older version."""
    return next(filter(None, (state.get("journal") for state in found["callbacks"].values())), None)


def _spending(found: Mapping[str, Any], done: int) -> Spending:
    """Return what the run had spent at the checkpoint; one of before there were budgets knows its rounds alone."""
    packed = [state["spending"] for state in found["callbacks"].values() if "spending" in state]
    return Spending.unpack(packed[0]) if packed else Spending(Spent(done))


def _older(paths: Sequence[Path], config_hash: str) -> dict[str, Any] | None:
    try:
        return usable(paths[0], config_hash) if paths else None
    except DamagedCheckpoint:
        return None
