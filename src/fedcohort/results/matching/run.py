"""A run to compare: its parameters and tags, and facts that are read from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from fedcohort.record.tags import COMMITS, DONE, ENDED_BY, FOLDER, ROUNDS, SEPARATOR, SWEEPS
from fedcohort.roles import OptionEffect, role_of

SEED = "seed"
OptionValues = tuple[tuple[str, str], ...]  # name and value of each option, sorted by name

# Option that sets in which rounds a metric is measured. server_val/loss may be a signal, measured in all rounds.
INTERVAL_OPTION_BY_METRIC = {"test/": "eval.every", "server_val/acc": "eval.every", "clients/": "eval.clients_every"}


@dataclass(frozen=True)
class Run:
    """A tracked run.

    Attributes:
        params: every option by its dotted name; `rounds` is that of the last start.
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
        """Return the parameter or else the tag of this name; None without either."""
        return self.params.get(name, self.tags.get(name))

    @property
    def seed(self) -> int:
        return int(self.params[SEED])

    @property
    def ended_early(self) -> bool:
        """Whether the run has fewer rounds than its option `rounds`; False if either is not known."""
        done, requested = self.tags.get(DONE), self.params.get(ROUNDS)
        return done is not None and requested is not None and int(done) < int(requested)

    @property
    def sweeps(self) -> list[str]:
        """Ids of the sweeps that the run belongs to, the earliest first."""
        return [name for name in self.tags.get(SWEEPS, "").split(SEPARATOR) if name]

    @property
    def ended_by(self) -> list[str]:
        """The options of the budget that the run has reached; none if a callback ended it, or if they are not known."""
        return [name for name in self.tags.get(ENDED_BY, "").split(SEPARATOR) if name]


def result_options(run: Run) -> OptionValues:
    """Return name and value of each option that decides the run's result, without the seed."""
    names = {name for name in run.params if role_of(name).effect is OptionEffect.RESULTS} - {SEED}
    return tuple((name, run.params[name]) for name in sorted(names))


def differences(a: Iterable[tuple[str, str]], b: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return (name, value in a, value in b) of each option that differs; "none" if one of them lacks it."""
    first, second = dict(a), dict(b)
    pairs = [(name, first.get(name, "none"), second.get(name, "none")) for name in sorted({*first, *second})]
    return [(name, value, other_value) for name, value, other_value in pairs if value != other_value]


def label(run: Run) -> str:
    """Return the name of the run's folder, or its name in MLflow if it has no folder.

    The name in MLflow lacks the hash of the config, which distinguishes two runs with the same choices.
    """
    folder = PurePath(run.tags.get(FOLDER, "")).name
    return folder or f"{run.name} (MLflow's {run.id[:8]})"


def commit(run: Run) -> str:
    """Return the commit of the run's code; all commits if it was resumed with other code."""
    if "," in (commits := run.tags.get(COMMITS, "")):
        return commits.replace(", ", " then ")
    changed = " with uncommitted changes" if run.tags.get("dirty") == "true" else ""
    return (run.tags.get("commit", "")[:8] or "unknown") + changed


def name_newest(runs: Sequence[Run]) -> str | None:
    """Return the sweep with the newest run; among equals the sweep whose name sorts last; None without any sweep."""
    pairs = [(run.started_ms, sweep) for run in runs for sweep in run.sweeps]
    return max(pairs)[1] if pairs else None
