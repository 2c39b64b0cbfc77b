"""Find the checkpoint from which a run resumes: the newest one, once it, code, versions and processes are checked.

resume=true: the newest one, with the code, the versions and the processes that wrote it. resume=previous: where the
newest is damaged, the one before it, too. resume=force: in spite of other code, versions and processes, too.
"""

import logging
import os
from collections.abc import Sequence
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
    paths = [path for path in (home.checkpoint, home.previous) if path.exists()]
    if not paths:
        return Restart()
    path = paths[0]
    try:
        payload = usable(path, config_hash)
    except DamagedCheckpoint as error:
        older = _load_if_sound(paths[1:], config_hash)
        if older is None:
            previous = "the one before it, too" if paths[1:] else "there is none before it"
            raise CheckpointError(f"{error}; {previous}: start afresh with resume=false") from error
        done = checkpoint.rounds_in(older)
        if resume not in FALLS_BACK:
            raise CheckpointError(
                f"{error}; the one before it, of round {done}, is whole: go on from there with resume=previous"
            ) from error
        log.warning("%s; going on from the one before it, of round %d", error, done)
        payload, path = older, paths[1]
    differences = provenance.differences(payload[checkpoint.ENTRY], now)
    if differences and resume != FORCE:
        raise CheckpointError(
            f"{path} was written with something else, and would go on with other bits: {'; '.join(differences)}. Go "
            "back to that, or go on all the same with resume=force, which summary.json and MLflow then say"
        )
    done = checkpoint.rounds_in(payload)
    states = payload["callbacks"].values()
    # The journal's running digest at the checkpoint: None where no journal was kept, or by an older version.
    journal.check(home.path, done, next((state["journal"] for state in states if state.get("journal")), None))
    if path != home.checkpoint:
        os.replace(path, home.checkpoint)
    for difference in differences:
        log.warning("resume=force: %s", difference)
    packed = [state["spending"] for state in states if "spending" in state]  # none from before there were budgets
    spending = Spending.unpack(packed[0]) if packed else Spending(Spent(done))
    return Restart(done, differences if resume == FORCE else None, spending)


def usable(path: Path, config_hash: str) -> dict[str, Any]:
    """Return the checkpoint, once it and the clients' files are checked. Raises `CheckpointError`."""
    payload = checkpoint.load(path, config_hash)
    for state in payload["callbacks"].values():
        if "clients" in state:
            store.check(path.parent, state["clients"])
    return payload


def _load_if_sound(paths: Sequence[Path], config_hash: str) -> dict[str, Any] | None:
    try:
        return usable(paths[0], config_hash) if paths else None
    except DamagedCheckpoint:
        return None
