"""The interface of an observer, which reads frozen records of a run. The engine does not depend on observers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.round.budget import Budget
from fedcohort.types import Ids, RoundReport, Values


@dataclass(frozen=True)
class RunInfo:
    """The metadata of a run that is known when it starts.

    Attributes:
        folder: run folder, which holds every file of the run.
        name: last part of the folder's path.
        choices: choice of each config group.
        config: the composed config as plain dictionaries.
        config_hash: hash of the options that decide results, without the seed.
        seed: seed of the run.
        commit, dirty: commit of the running code, and whether files were changed since.
        versions: versions of Python and packages, by name.
        tags: texts by name: the run's sweeps (`sweep_id`), and the command or address that shows the tracked runs
            (`tracking`). Others name the implementation of local training, the data, and the signals of an oracle.
        n_train: number of training samples of each client, int64 [K].
        class_counts: number of training and validation samples by client and true class, int64 [K, n_classes]; [K, 1]
            if samples have no class or more than one.
        noise_rate: label-noise rate of each client, [K].
        changed: choices and options that were typed and that MLflow records, with their values.
        feature_noise: strength of the noise in each client's inputs, [K]; None without such noise.
        expected_s: expected virtual seconds of a full local job, [K].
        client_names: names of the clients in the data, text [K]; None if they have no names.
        labels: name of each class by its number; {} if the classes have no names.
        skew: imbalance metrics of the federation by name (`skew.skew_metrics`), as far as the dataset allows.
        n_params: number of trainable model parameters.
        rounds: number of rounds that the run is to reach.
        start: rounds completed before this start; 0 for a new run.
        spent: cost of these rounds (`round.budget.BudgetHistory.to_plain_data`); {} for a new run.
        starts: every start of the run, this one last (`provenance.append_start_record`).
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
        """Limits at which the run ends: rounds, virtual seconds, bytes, accuracy, client FLOPs and joules."""
        return Budget.from_config({**self.config, "rounds": self.rounds})


class Observer:
    """An observer of a run. Observers are called in the order of the `callback` list, the journal first.

    A subclass overrides the methods that it needs.
    """

    def prepare(self) -> None:
        """Prepare for the run, before slow imports; an observer may start a child process here."""

    def opening_line(self) -> str:
        """Return a line that is printed when the run starts; "" for none."""
        return ""

    def start(self, info: RunInfo) -> None:
        """Handle the start of a run; called once, before the first round of this process.

        Args:
            info: metadata of the run.
        """

    def observe(self, report: RoundReport) -> None:
        """Handle a round; called after every round, and in a new run with step 0 for the untrained model.

        Args:
            report: results of the round.
        """

    def record_checkpoint(self) -> None:
        """Handle a checkpoint: called after each checkpoint is on disk."""

    def digest(self, step: int) -> str | None:
        """Return the digest of the observer's file at round `step`, for the checkpoint; None to store no digest."""
        return None

    def finish(self, status: str) -> None:
        """Handle the end of the run: called once.

        Args:
            status: "finished", "interrupted", "failed", or "dropped" if no round was trained and the folder is removed.
        """

    def catch_up(self, folder: Path) -> None:
        """Handle the run in `folder` that had finished before; called instead of the other methods."""
