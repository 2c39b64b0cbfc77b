"""How a sweep stands while it runs, from its folder and those of its runs: counts, time left, and the best so far."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedcohort.host.lock import is_held
from fedcohort.record import history
from fedcohort.record.folder import log_of, status_of
from fedcohort.startup import jobs
from fedcohort.startup.jobs import JobRecord, Plan

KILLED = "its process was killed (kill -9, or the kernel for lack of memory)"
METRIC = "server_val/acc"  # nothing is chosen by the test set


@dataclass(frozen=True)
class Outlook:
    """How a sweep stands.

    Attributes:
        plan: what it is to do.
        records: of the jobs that have begun, by number.
        alive: whether the process that was started by hand is.
        queued: whether SLURM has jobs of it.
    """

    plan: Plan
    records: Mapping[int, JobRecord]
    alive: bool
    queued: bool = False

    def count(self, *hows: str) -> int:
        """Return how many jobs are one of `hows`."""
        return sum(record.how in hows for record in self.records.values())

    @property
    def left(self) -> int:
        """Jobs that have not begun."""
        return max(0, len(self.plan.jobs) - len(self.records))

    def seconds_left(self, now: float) -> float | None:
        """Return about how long the jobs that aren't done will take, None where nothing can be said yet.

        A job takes as long as those that are done took on average; where none is, as long as the rounds of those that
        run say. As many run at a time as now. now: in seconds since 1970.
        """
        running = [record for record in self.records.values() if record.how == "running"]
        done = [_length(record, now) for record in self.records.values() if record.how == "done"]
        shares = [(_length(record, now), _share(record)) for record in running]
        known = [each for each in done if each is not None]
        known = known or [length / share for length, share in shares if length is not None and share > 0]
        if not known:
            return None
        mean = sum(known) / len(known)
        work = sum(max(0.0, mean * (1 - share) if share else mean - (length or 0.0)) for length, share in shares)
        return (work + self.left * mean) / max(1, len(running))

    def best(self) -> tuple[float, JobRecord] | None:
        """Return the job with the highest last validation accuracy among those that are done, with that."""
        found = [(value, n) for n, record in self.records.items() if (value := _last(record)) is not None]
        value, number = max(found, key=lambda each: (each[0], -each[1]), default=(0.0, -1))
        return (value, self.records[number]) if found else None


def look(sweep: Path, plan: Plan, *, queued: bool = False) -> Outlook:
    """Return how the sweep in the folder `sweep` stands; queued: whether SLURM has jobs of it."""
    alive = is_held(sweep / jobs.LOCK)
    found = jobs.read(sweep)
    waited_for, cancelled = alive or queued, is_cancelled(sweep)
    return Outlook(plan, {n: _find_killed(record, waited_for, cancelled) for n, record in found.items()}, alive, queued)


def is_cancelled(sweep: Path) -> bool:
    """Return whether `fedcohort sweep cancel` has ended the sweep in the folder `sweep`."""
    return (sweep / jobs.CANCELLED).exists()


def describe_stopped(record: JobRecord, *, cancelled: bool) -> str:
    """Return how far a stopped job came; cancelled: whether its sweep was."""
    status = status_of(record.folder) if record.folder is not None else {}
    how = "cancelled by you" if cancelled else "stopped"
    if "rounds" not in status:
        return f"{how} before its first round"
    return f"{how}, {status['rounds_done']} of {status['rounds']} rounds; resume=true continues"


def line(number: int, total: int, seconds: float | None) -> str:
    """`job 7 of 18, about 40 min left`; number: from 0 on."""
    return f"job {number + 1} of {total}{f', {about(seconds)} left' if seconds is not None else ''}"


def about(seconds: float) -> str:
    """Return a time in one number: `about 40 min`."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"about {round(seconds / 86_400)} days"


def vary(jobs: Sequence[Sequence[str]], words: Sequence[str]) -> str:
    """Return those of `words` that not all jobs have; all of them where there is one job."""
    common = set.intersection(*(set(each) for each in jobs)) if len(jobs) > 1 else set()
    return " ".join(word for word in words if word not in common)


def _find_killed(record: JobRecord, waited_for: bool, cancelled: bool) -> JobRecord:
    """Return the record; one that says "running" was killed if no process waits for it and none holds its run."""
    held = record.folder is not None and is_held(record.folder / "run.lock")
    if record.how != "running" or waited_for or held:
        return record
    return replace(record, how="stopped") if cancelled else fail_killed(record)


def fail_killed(record: JobRecord) -> JobRecord:
    """Return the record of a job whose process was killed."""
    return replace(record, how="failed", reason=f"{KILLED}{log_of(record.folder)}")


def _length(record: JobRecord, now: float) -> float | None:
    return (record.ended or now) - record.began if record.began is not None else None


def _share(record: JobRecord) -> float:
    """Return how much of its rounds a job has done."""
    status = status_of(record.folder) if record.folder is not None else {}
    return float(min(1.0, status.get("rounds_done", 0) / max(1, status.get("rounds", 1))))


def _last(record: JobRecord) -> float | None:
    if record.how not in ("done", "skipped") or record.folder is None:
        return None
    found, _ = history.lines(record.folder / history.NAME)
    values = [each.metrics[METRIC] for each in found if each.step > 0 and METRIC in each.metrics]
    return values[-1] if values and math.isfinite(values[-1]) else None
