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
from fedcohort.record.folder import LAST_CKPT, PREVIOUS_CKPT, RunFolder
from fedcohort.round import store
from fedcohort.round.budget import BudgetHistory, BudgetUse

log = logging.getLogger("fedcohort")
RESUME_MODES_WITH_FALLBACK, FORCED_RESUME_MODE = ("previous", "force"), "force"


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
    run_folder: RunFolder, config_hash: str, resume_mode: bool | str, start_record: provenance.StartRecord
) -> ResumePoint:
    """Find the newest intact checkpoint of a run, after checking journal, per-client tables and other files.

    Args:
        run_folder: the run's folder.
        config_hash: hash of the config, which the checkpoint must have.
        resume_mode: the option `resume`: True for the newest checkpoint, "previous" to allow the one before, "force" to
            accept any code.
        start_record: code, versions and processes of this start (`provenance.describe_start`).

    Raises:
        CheckpointError: the files are damaged, or written with other code, versions or processes.
    """
    manifest.check_all_files(run_folder.path)
    # If a kill interrupted the renaming of the newest checkpoint, only the previous one exists
    ckpt_paths = [p for p in (run_folder.path / LAST_CKPT, run_folder.path / PREVIOUS_CKPT) if p.exists()]
    if not ckpt_paths:
        return ResumePoint()
    ckpt_path = ckpt_paths[0]
    try:
        checkpoint_content = load_checkpoint_files(ckpt_path, config_hash)
    except DamagedCheckpoint as error:
        previous_checkpoint_content = None
        with suppress(DamagedCheckpoint):
            previous_checkpoint_content = load_checkpoint_files(ckpt_paths[1], config_hash) if ckpt_paths[1:] else None
        if previous_checkpoint_content is None:
            reason = "the previous checkpoint is damaged, too" if ckpt_paths[1:] else "there is no previous checkpoint"
            raise CheckpointError(f"{error}; {reason}: start a new run with resume=false") from error
        rounds_done = checkpoint.count_checkpoint_rounds(previous_checkpoint_content)
        if resume_mode not in RESUME_MODES_WITH_FALLBACK:
            message_start = f"{error}; the previous checkpoint, of round {rounds_done}, is intact"
            raise CheckpointError(f"{message_start}: resume from it with resume=previous") from error
        log.warning("%s; resuming from the previous checkpoint, of round %d", error, rounds_done)
        checkpoint_content, ckpt_path = previous_checkpoint_content, ckpt_paths[1]
    start_differences = provenance.list_start_differences(checkpoint_content[checkpoint.CHECKPOINT_KEY], start_record)
    if start_differences and resume_mode != FORCED_RESUME_MODE:
        raise CheckpointError(
            f"{ckpt_path} was written under other conditions, so that the run would not resume to the same bits: "
            f"{'; '.join(start_differences)}. Restore these, or use resume=force, which summary.json and MLflow record"
        )
    rounds_done = checkpoint.count_checkpoint_rounds(checkpoint_content)
    callback_states = checkpoint_content["callbacks"].values()
    # The journal's running digest at the checkpoint; None without a journal, or in the files of older versions
    journal_digest = next((s["journal"] for s in callback_states if s.get("journal")), None)
    journal.check_journal(run_folder.path, rounds_done, journal_digest)
    if ckpt_path.name != LAST_CKPT:
        os.replace(ckpt_path, run_folder.path / LAST_CKPT)
    for start_difference in start_differences:
        log.warning("resume=force continues in spite of a difference: %s", start_difference)
    spent_data = [s["spending"] for s in callback_states if "spending" in s]  # older versions saved none
    spending = BudgetHistory.from_plain_data(spent_data[0]) if spent_data else BudgetHistory(BudgetUse(rounds_done))
    return ResumePoint(rounds_done, start_differences if resume_mode == FORCED_RESUME_MODE else None, spending)


def load_checkpoint_files(ckpt_path: Path, config_hash: str) -> dict[str, Any]:
    """Return the content of the checkpoint `ckpt_path` after checking it and the files of the clients' stored vectors.

    Raises `CheckpointError` if they are damaged, or have another config than the one with hash `config_hash`.
    """
    checkpoint_content = checkpoint.load_checkpoint(ckpt_path, config_hash)
    for callback_state in checkpoint_content["callbacks"].values():
        if "clients" in callback_state:
            store.check_stored_vectors(ckpt_path.parent, callback_state["clients"])
    return checkpoint_content
