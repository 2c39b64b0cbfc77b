"""Which sweeps a run belongs to: the one that it was run in, and each later one that found it finished.

They are one tag, `sweep_id`, the earliest first.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host.time_limit import time_limit
from fedcohort.record import card
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import SEPARATOR, SWEEPS
from fedcohort.tracking import identity, server

log = logging.getLogger("fedcohort")


def sweeps(tag: str | None) -> list[str]:
    """The ids in the tag."""
    return tag.split(SEPARATOR) if tag else []


def sweeps_of(folder: Path) -> list[str]:
    """Return the sweeps of the run in `folder`; none where it has not begun, or keeps no journal."""
    return sweeps(card.tags(folder).get(SWEEPS)) if (folder / card.NAME).exists() else []


def sweeps_tag(folder: Path, sweep: str | None) -> dict[str, str]:
    """The tag of the run in `folder` once it has taken part in `sweep` too; {} for a run of no sweep."""
    known = sweeps_of(folder)
    all_of_them = [*known, *([sweep] if sweep and sweep not in known else [])]
    return {SWEEPS: SEPARATOR.join(all_of_them)} if all_of_them else {}


def join(folder: Path, sweep: str) -> None:
    """Write down that a finished run belongs to `sweep` too; one without a journal has nowhere to."""
    try:
        info = card.load(folder)
    except CheckpointError:
        return
    card.correct(replace(info, tags={**info.tags, **sweeps_tag(folder, sweep)}))


def send(runs: Sequence[RunInfo]) -> None:
    """Have MLflow know the sweeps of `runs`, which have finished. A server that is gone is no error."""
    for info in runs:
        known = identity.load(info.folder)
        if known is None or known.run_id is None:
            continue
        try:
            with time_limit(server.WAIT_S, "sending"):
                server.connect(known.place).set_tag(known.run_id, SWEEPS, info.tags[SWEEPS])
        except server.failures() as error:
            log.warning(
                "MLflow at %s can't be told that %s belongs to this sweep too (%s)",
                known.tracking_uri,
                info.name,
                server.reason(error),
            )
