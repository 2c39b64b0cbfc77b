"""Find the checkpoint from which a run resumes, and check it.

resume=true takes the newest checkpoint, and requires the code, the versions and the processes that wrote it.
resume=previous may also take the previous checkpoint where the newest is damaged. resume=force also accepts other code,
versions and processes.
"""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcohort.errors import CheckpointError, DamagedCheckpoint
from fedcohort.lightning import checkpoint
from fedcohort.record import journal, manifest, provenance
from fedcohort.record.folder import RunFolder
from fedcohort.round import store
from fedcohort.round.budget import BudgetHistory, BudgetUse

log = logging.getLogger("fedcohort")
MODES_WITH_FALLBACK, FORCE_MODE = ("previous", "force"), "force"


@dataclass(frozen=True)
class ResumePoint:
    """The state from which a run resumes.

    Attributes:
        rounds_done: number of rounds that are done, 0 without a checkpoint.
        forced_differences: differences in code, versions and processes that resume=force ignores; else None.
        spending: what the run has spent of its budget in these rounds.
    """

    rounds_done: int = 0
    forced_differences: Sequence[str] | None = None
    spending: BudgetHistory = field(default_factory=BudgetHistory)


def find_resume_point(
    folder: RunFolder, config_hash: str, resume: bool | str, start_record: provenance.StartRecord
) -> ResumePoint:
    """Find the newest intact checkpoint of a run, after checking journal, per-client tables and other files.

    Args:
        folder: the run's folder.
        config_hash: hash of the config, which the checkpoint must have.
        resume: the option: True for the newest checkpoint, "previous" to allow the one before, "force" for any code.
        start_record: code, versions and processes of this start (`provenance.current_start`).

    Raises:
        CheckpointError: the files are damaged, or written with other code, versions or processes.
    """
    manifest.check_all_files(folder.path)
    paths = [path for path in (folder.checkpoint, folder.previous_checkpoint) if path.exists()]
    if not paths:
        return ResumePoint()
    path = paths[0]
    try:
        content = load_checkpoint_files(path, config_hash)
    except DamagedCheckpoint as error:
        previous_content = None
        with suppress(DamagedCheckpoint):
            previous_content = load_checkpoint_files(paths[1], config_hash) if paths[1:] else None
        if previous_content is None:
            reason = "the previous checkpoint is damaged, too" if paths[1:] else "there is no previous checkpoint"
            raise CheckpointError(f"{error}; {reason}: start a new run with resume=false") from error
        n_done = checkpoint.count_rounds_in(previous_content)
        if resume not in MODES_WITH_FALLBACK:
            raise CheckpointError(
                f"{error}; the previous checkpoint, of round {n_done}, is intact: resume from it with resume=previous"
            ) from error
        log.warning("%s; resuming from the previous checkpoint, of round %d", error, n_done)
        content, path = previous_content, paths[1]
    differences = provenance.list_differences(content[checkpoint.CHECKPOINT_ENTRY], start_record)
    if differences and resume != FORCE_MODE:
        raise CheckpointError(
            f"{path} was written under other conditions, so that the run would not resume to the same bits: "
            f"{'; '.join(differences)}. Restore these, or use resume=force, which summary.json and MLflow record"
        )
    n_done = checkpoint.count_rounds_in(content)
    states = content["callbacks"].values()
    # The journal's running digest at the checkpoint; None without a journal, or in the files of older versions
    journal.check_journal(folder.path, n_done, next((s["journal"] for s in states if s.get("journal")), None))
    if path != folder.checkpoint:
        os.replace(path, folder.checkpoint)
    for difference in differences:
        log.warning("resume=force continues in spite of a difference: %s", difference)
    histories = [state["spending"] for state in states if "spending" in state]  # older versions saved none
    spending = BudgetHistory.from_plain_data(histories[0]) if histories else BudgetHistory(BudgetUse(n_done))
    return ResumePoint(n_done, differences if resume == FORCE_MODE else None, spending)


def load_checkpoint_files(path: Path, config_hash: str) -> dict[str, Any]:
    """Return the content of the checkpoint `path` after checking it and the files of the clients' stored vectors.

    Raises `CheckpointError` if they are damaged, or have another config than the one with hash `config_hash`.
    """
    content = checkpoint.load_checkpoint(path, config_hash)
    for state in content["callbacks"].values():
        if "clients" in state:
            store.check_stored_vectors(path.parent, state["clients"])
    return content
