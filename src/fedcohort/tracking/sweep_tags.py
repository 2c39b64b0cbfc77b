"""The sweeps that a run belongs to: the sweep that ran it, and each later sweep that found it finished.

The tag `sweep_id` has their ids, the earliest first.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fedcohort.errors import CheckpointError
from fedcohort.host.time_limit import time_limit
from fedcohort.record import metadata
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import SEPARATOR, SWEEPS
from fedcohort.tracking import identity, server

log = logging.getLogger("fedcohort")


def parse_sweeps(tag: str | None) -> list[str]:
    """Return the ids of sweeps in the value of the tag `sweep_id`."""
    return tag.split(SEPARATOR) if tag else []


def sweeps_of(folder: Path) -> list[str]:
    """Return the sweeps of the run in `folder`; none if it has not begun or has no journal."""
    return parse_sweeps(metadata.read_tags(folder).get(SWEEPS)) if (folder / metadata.INFO_FILE).exists() else []


def sweeps_tag(folder: Path, sweep: str | None) -> dict[str, str]:
    """Return the tag of the run in `folder` with `sweep` added; {} without any sweep."""
    ids = list(dict.fromkeys([*sweeps_of(folder), *([sweep] if sweep else [])]))
    return {SWEEPS: SEPARATOR.join(ids)} if ids else {}


def add_sweep(folder: Path, sweep: str) -> None:
    """Record that a finished run also belongs to `sweep`, unless it has no journal."""
    try:
        info = metadata.load_info(folder)
    except CheckpointError:
        return
    metadata.rewrite_info(replace(info, tags={**info.tags, **sweeps_tag(folder, sweep)}))


def send_sweeps(runs: Sequence[RunInfo]) -> None:
    """Send the sweeps of finished runs to MLflow. A server that is down is no error."""
    for info in runs:
        tracked = identity.load(info.folder)
        if tracked is None or tracked.run_id is None:
            continue
        try:
            with time_limit(server.WAIT_S, "sending"):
                server.connect(tracked.place).set_tag(tracked.run_id, SWEEPS, info.tags[SWEEPS])
        except server.expected_errors() as error:
            log.warning(
                "MLflow at %s cannot record that %s belongs to this sweep, too (%s)",
                tracked.tracking_uri,
                info.name,
                server.root_cause(error),
            )
