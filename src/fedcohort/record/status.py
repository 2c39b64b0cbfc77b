"""Write `status.json`: whether a run is running, finished, interrupted or failed, and its number of completed rounds.

A resume and a sweep read the file. After a kill it still has the status "running", but no process holds the run's lock.
"""

import json
import time
from collections.abc import Sequence
from typing import Any

from fedcohort.host import slurm
from fedcohort.record import digest
from fedcohort.record.folder import write_atomically
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.round.budget import BudgetHistory
from fedcohort.types import RoundReport


class RunStatus(Observer):
    """An observer that keeps the run's `status.json` up to date.

    Args:
        callback_configs: configs of the callbacks that may end the run early.
    """

    def __init__(self, callback_configs: Sequence[Any] = ()) -> None:
        self.callbacks = list(callback_configs)
        self.info: RunInfo | None = None
        self.spending = BudgetHistory()

    def start(self, info: RunInfo) -> None:
        self.info, self.spending = info, BudgetHistory.from_plain_data(info.spent)
        self._write_status("running")

    def observe(self, report: RoundReport) -> None:
        self.spending = self.spending.add_round_metrics(report.step, report.metrics)

    def record_checkpoint(self) -> None:
        """Write the number of rounds that the checkpoint holds."""
        self._write_status("running")

    def finish(self, status: str) -> None:
        self._write_status(status)

    def _write_status(self, status: str) -> None:
        info = self.info
        if info is None:  # an earlier observer could not start, or another process observes the run
            return
        reached_options = info.budget.list_reached_limits(self.spending.now) if status == "finished" else []
        status_record = {
            "status": status,
            "rounds_done": self.spending.now.rounds,
            "rounds": info.rounds,
            "ended_by": reached_options,
            "early": status == "finished" and not reached_options,
            "spent": self.spending.to_plain_data(),
            "callbacks": self.callbacks,
            **{n: getattr(info, n) for n in ("config_hash", "seed", "choices", "commit", "dirty", "versions")},
            "slurm_job": slurm.read_job_id(),
            "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        write_atomically(info.folder / "status.json", digest.append_digest(json.dumps(status_record, indent=1)) + "\n")
