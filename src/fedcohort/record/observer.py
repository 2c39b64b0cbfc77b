"""The contract of an observer: it reads frozen records; the engine has never heard of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.round.budget import Budget
from fedcohort.types import Ids, RoundReport, Values


@dataclass(frozen=True)
class RunInfo:
    """What is known when a run starts.

    Attributes:
        folder: the run's own folder; it holds everything that is written.
        name: its last part.
        choices: the word chosen in each group.
        config: the composed config as plain dictionaries.
        config_hash: of the config without what doesn't change results.
        tags: anything to find the run by (`sweep_id`).
        n_train: T_i sizes, int64 [K].
        class_counts: true labels of T_i and V_i, int64 [K, n_classes]; [K, 1] where samples have no class.
        noise_rate: each client's label-noise rate, [K].
        changed: the words and options that differ from the defaults in configs/, as they are typed; {} where nobody
            compared them.
        feature_noise: how much each client's inputs are disturbed, [K], or None where nobody's are.
        expected_s: expected virtual seconds of a full local job, [K].
        client_names: what the data call each client, text [K]; None where they don't.
        labels: what each class is called in the data, by its number; {} where that is all they have.
        skew: FedDiverse's metrics of the federation, by name (`skew.metrics`); those that the dataset has.
        n_params: P.
        rounds: the number that the run goes to.
        start: rounds done before (0 for a fresh run).
        spent: what those rounds came to (`round.budget.Spending.pack`); {} for a fresh run.
        starts: every start of the run so far, this one last (`provenance.note_start`). tags["tracking"]: the line that
            opens the tracking page. tags["engine"]: which engine trains, and why.
    """

    folder: Path
    name: str
    choices: Mapping[str, str]
    config: Mapping[str, Any]
    config_hash: str
    seed: int
    commit: str
    dirty: bool
    versions: Mapping[str, str]
    tags: Mapping[str, str]
    n_train: Ids
    class_counts: np.ndarray
    noise_rate: Values
    expected_s: Values
    n_params: int
    rounds: int
    start: int
    skew: Mapping[str, float] = field(default_factory=dict)
    starts: Sequence[Mapping[str, Any]] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    feature_noise: Values | None = None
    changed: Mapping[str, str] = field(default_factory=dict)
    client_names: np.ndarray | None = None

    @property
    def budget(self) -> Budget:
        """Where the run ends."""
        return Budget.from_config({**self.config, "rounds": self.rounds})


class Observer:
    """Called in the order of the `callback` list: the journal first, since the others read it.

    An observer writes what it does, and inherits the rest.
    """

    def prepare(self) -> None:
        """Is called once, before anything slow is imported: a process of its own may be started here."""

    def opening_line(self) -> str:
        """What people are told of it at the start; "" for nothing."""
        return ""

    def start(self, info: RunInfo) -> None:
        """Is called once, before the first round of this process."""

    def observe(self, report: RoundReport) -> None:
        """Is called after every round, and once with step 0 for w_0."""

    def note_checkpoint(self) -> None:
        """Is called after each checkpoint: the rounds so far are saved."""

    def digest(self, step: int) -> str | None:
        """Return what the checkpoint of round `step` keeps to recognise the observer's file, None for nothing."""
        return None

    def finish(self, status: str) -> None:
        """Is called once, at the end.

        status is "finished", "interrupted", "failed", or "dropped" where no round was trained and the folder goes.
        """

    def catch_up(self, folder: Path) -> None:
        """Is called instead of all this, where the run in `folder` had finished before."""
