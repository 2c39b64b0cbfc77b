"""`fedcohort.sweep`: run all combinations of several values, as `python train.py -m` does, and return their results."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedcohort.api.run import INTERRUPTED_EXIT_CODE, RunResult, find_config_folder, read_path, replace_passed_data
from fedcohort.console import terminal
from fedcohort.host import messages
from fedcohort.jobs.grid import prepare_grid_sweep, run_grid_sweep
from fedcohort.jobs.launch import LaunchOptions
from fedcohort.jobs.status import list_varying_overrides
from fedcohort.record import sweep_folder
from fedcohort.record.sweep_folder import JobRecord
from fedcohort.report.table import Table
from fedcohort.startup import command_line
from fedcohort.startup.hydra_errors import raise_one_line_errors
from fedcohort.startup.overrides import list_overrides
from fedcohort.tracking.sweeps import choose_axes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep. The files of its runs are read when an attribute is accessed.

    Attributes:
        folder: folder of the sweep, with the record of each job.
    """

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", read_path("folder", self.folder))

    @cached_property
    def jobs(self) -> list[JobRecord]:
        """The record of each job that has begun: overrides, state, folder of its run, reason of a failure."""
        return list(sweep_folder.read_job_records(self.folder).values())

    @property
    def results(self) -> list[RunResult]:
        """The results of the runs that are done, in the order of the jobs."""
        return [RunResult(run_folder) for run_folder in self.folders]

    @property
    def folders(self) -> list[Path]:
        """The folders of the runs that are done."""
        return [j.folder for j in self.jobs if j.folder is not None and j.how in ("done", "skipped")]

    @cached_property
    def runs(self) -> "pd.DataFrame":
        """One row per job: the options that vary, state, last test accuracy, cost, folder, reason of a failure."""
        import pandas as pd

        finished_folders, job_rows = set(self.folders), []
        for job_record in self.jobs:
            varying_overrides = list_varying_overrides([r.words for r in self.jobs], job_record.words).split()
            job_row: dict[str, Any] = dict(o.split("=", 1) for o in varying_overrides) | {"status": job_record.how}
            if job_record.folder in finished_folders:
                run_result = RunResult(job_record.folder)
                summary = run_result.summary
                n_bytes = sum(summary["bytes"][link_direction] or 0.0 for link_direction in ("down", "up"))
                job_row |= {"accuracy": run_result.accuracy, "virtual_s": summary["virtual_s"], "bytes": n_bytes}
                job_row |= {"client_flops": summary["client_flops"]}
            job_rows.append(job_row | {"folder": str(job_record.folder or ""), "reason": job_record.reason})
        return pd.DataFrame(job_rows)

    @cached_property
    def rounds(self) -> "pd.DataFrame":
        """The rounds of all runs, with the index (run, step); `run` is the name of its folder."""
        return self._concatenate_frames({run_folder.name: RunResult(run_folder).rounds for run_folder in self.folders})

    @cached_property
    def clients(self) -> "pd.DataFrame":
        """The rows of clients of all runs, with the index (run, row); `run` is the name of its folder."""
        return self._concatenate_frames({run_folder.name: RunResult(run_folder).clients for run_folder in self.folders})

    def choose_axes(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return `rows`, `cols` and `baseline` of a comparison by name, and a value of each further varied option."""
        finished_jobs = [j for j in self.jobs if j.folder is not None and j.folder in self.folders]
        return choose_axes([(RunResult(Path(str(j.folder))).info, j.words) for j in finished_jobs])

    @staticmethod
    def _concatenate_frames(frame_by_run: "Mapping[str, pd.DataFrame]") -> "pd.DataFrame":
        import pandas as pd

        return pd.concat(frame_by_run, names=["run"]) if frame_by_run else pd.DataFrame()

    def __repr__(self) -> str:
        job_table = self.runs.drop(columns=["folder", "reason"], errors="ignore")
        return (
            f"sweep {self.folder.name}: {len(self.jobs)} job{'s' * (len(self.jobs) != 1)}\n{job_table.to_string()}\n"
            f"folder  {self.folder}"
        )

    def _repr_html_(self) -> str:
        column_formats = {"accuracy": ".3f", "virtual_s": ".0f", "bytes": ".3g", "client_flops": ".3g"}
        job_table = self.runs.drop(columns=["folder", "reason"], errors="ignore")
        return str(Table(job_table, f"sweep {self.folder.name}", column_formats).html())


def sweep(*, n_jobs: int = 1, launcher: str = "local", **options: object) -> SweepResult:
    """Run all combinations of several values, as `python train.py -m` does, and return their results.

        sweep(selector=["random", "flash"], seed=range(3), rounds=20, n_jobs=2)

    A list, a range or a text with commas holds several values. A job that fails does not end the others. After Ctrl-C
    the result has the jobs so far; the same call with `resume=True` runs those that are missing.

    Args:
        n_jobs: jobs at the same time; a script that is not a notebook then needs `if __name__ == "__main__":`.
        launcher: a choice of configs/hydra/launcher.
        options: choices of groups and values of options, as in `run`; a list or a range holds several values.

    Raises:
        FedcohortError: with the message that the command prints; for jobs that would be rejected, before the first one
            starts.
    """
    overrides, configs_folder = list_overrides(replace_passed_data(options), is_sweep=True), find_config_folder()
    messages.log_to_terminal()
    with raise_one_line_errors(overrides, configs_folder), terminal.print_progress_only():
        launch_options = LaunchOptions(launcher, n_jobs)
        command_line.check_command_line(["-m", *overrides], configs_folder)
        sweep_folder = prepare_grid_sweep(overrides, configs_folder, launcher)
        try:
            with suppress(KeyboardInterrupt):
                run_grid_sweep(sweep_folder, configs_folder, launch_options)
        except SystemExit as stop:
            if stop.code != INTERRUPTED_EXIT_CODE:
                raise
        return SweepResult(sweep_folder)
