"""A run to compare: its parameters and tags, and what follows from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from fedcohort.record.tags import ASKED, COMMITS, DONE, ENDED_BY, FOLDER, SEPARATOR, SWEEPS
from fedcohort.roles import Effect, role_of

SEED = "seed"

# The option by which a metric is measured in some rounds alone. server_val/loss may be a signal, of all rounds.
EVALUATED = {"test/": "eval.every", "server_val/acc": "eval.every", "clients/": "eval.clients_every"}


@dataclass(frozen=True)
class Run:
    """A run as it is tracked.

    Attributes:
        params: every option by its dotted name; `rounds` as it was asked for last.
        metrics: the last value of each metric.
    """

    id: str
    name: str
    status: str
    started_ms: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]

    def fact(self, name: str) -> str | None:
        return self.params.get(name, self.tags.get(name))

    @property
    def seed(self) -> int:
        return int(self.params[SEED])

    @property
    def early(self) -> bool:
        """Whether it has fewer rounds than it was asked for; no, where that isn't known."""
        done, asked = self.tags.get(DONE), self.params.get(ASKED)
        return done is not None and asked is not None and int(done) < int(asked)

    @property
    def sweeps(self) -> list[str]:
        """The sweeps that the run was in, the earliest first."""
        return [name for name in self.tags.get(SWEEPS, "").split(SEPARATOR) if name]

    @property
    def ended_by(self) -> list[str]:
        """The options of the budget that the run has reached; none if a callback ended it, or if that is not known."""
        return [name for name in self.tags.get(ENDED_BY, "").split(SEPARATOR) if name]


def settings(run: Run) -> tuple[tuple[str, str], ...]:
    """Return (name, value) of each option that decides the run's result, apart from the seed."""
    changes = {name for name in run.params if role_of(name).effect is Effect.RESULTS} - {SEED}
    return tuple((name, run.params[name]) for name in sorted(changes))


def commit(run: Run) -> str:
    """Return the commit that the run is of; all of them if it was resumed with other code."""
    if "," in (commits := run.tags.get(COMMITS, "")):
        return commits.replace(", ", " then ")
    changed = " with uncommitted changes" if run.tags.get("dirty") == "true" else ""
    return (run.tags.get("commit", "")[:8] or "unknown") + changed


def label(run: Run) -> str:
    """Return the name of its folder, under which it is found on disk, or, of a run without, what MLflow calls it.

    MLflow's name lacks the hash of the config, which tells two runs of the same words from each other.
    """
    folder = PurePath(run.tags.get(FOLDER, "")).name
    return folder or f"{run.name} (MLflow's {run.id[:8]})"


def differences(a: Iterable[tuple[str, str]], b: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """(name, value in a, value in b) of what differs; "none" where one of them lacks it."""
    left, right = dict(a), dict(b)
    names = sorted({*left, *right})
    return [
        (n, left.get(n, "none"), right.get(n, "none")) for n in names if left.get(n, "none") != right.get(n, "none")
    ]
