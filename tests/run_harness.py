"""Run train.py in this process: compose overrides, run them and collect the reports."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from omegaconf import DictConfig
from torch import nn

from config_options import CONFIGS
from fedcohort.component import Facts
from fedcohort.flat import has_batch_statistics
from fedcohort.record.observer import Observer
from fedcohort.round.components import Components
from fedcohort.startup import build, check, components, load, notices, run
from fedcohort.startup.compose import Composition, compose_with_hydra
from fedcohort.startup.compose_jobs import compose_job
from fedcohort.types import RoundReport

SMALL = (
    "clients=12",
    "cohort=4",
    "rounds=3",
    "model=logreg",
    "client.epochs=2",
    "callback=none",
    "logger=none",
)
EACH_ROUND, LAST_ROUND = "checkpoint.every_s=0", "checkpoint.every=1000"  # rounds with a checkpoint
small_checkpoints = EACH_ROUND  # conftest.py sets it for each module


@dataclass
class CollectReports(Observer):
    """Observer that stores all reports of the latest run."""

    latest: ClassVar[list["CollectReports"]] = []
    reports: list[RoundReport] = field(default_factory=list)
    status: str = ""

    def start(self, info: Any) -> None:
        self.info = info
        CollectReports.latest.append(self)

    def observe(self, report: RoundReport) -> None:
        self.reports.append(report)

    def finish(self, status: str) -> None:
        self.status = status


@dataclass(frozen=True)
class FinishedRun:
    folder: Path
    reports: list[RoundReport]
    info: Any
    vector: torch.Tensor | None = None  # the weights of a run without files

    @property
    def last(self) -> RoundReport:
        return self.reports[-1]

    @property
    def cohorts(self) -> list[list[int]]:
        return [report.cohort.tolist() for report in self.reports if report.step]

    def weights(self) -> torch.Tensor:
        if self.vector is not None:
            return self.vector
        state = torch.load(self.folder / "weights.pt", weights_only=True)
        return torch.cat([tensor.flatten().double() for tensor in state.values()])


def compose_overrides(*overrides: str) -> Composition:
    """Return the composed config of `python train.py <overrides>`; a test compares it with Hydra's."""
    return compose_job(overrides, CONFIGS)


@cache
def compose_by_hydra(overrides: tuple[str, ...]) -> DictConfig:
    return compose_with_hydra(overrides, CONFIGS)


def run_training(logs: Path, *overrides: str, small: bool = True) -> FinishedRun:
    """Run `python train.py <overrides>` in this process, with the options of `SMALL` unless `small` is false."""
    return run_composition(compose_overrides(*collecting_overrides(logs, *overrides, small=small)))


def collecting_overrides(logs: Path, *overrides: str, small: bool = True) -> tuple[str, ...]:
    """Return the overrides of a small run whose reports `CollectReports` stores."""
    base = small_overrides(*overrides) if small else overrides
    return (*base, f"paths.logs={logs}", "+callback.collect._target_=run_harness.CollectReports")


def small_overrides(*overrides: str) -> tuple[str, ...]:
    """Return the overrides, and before them the options of `SMALL` that they do not set."""
    names = {override.split("=")[0].lstrip("+~") for override in overrides}
    return (*(o for o in (*SMALL, small_checkpoints) if o.split("=")[0] not in names), *overrides)


def run_composition(composed: Composition) -> FinishedRun:
    """Run a composed config that contains the observer `CollectReports`."""
    CollectReports.latest.clear()
    folder = run.run(composed)
    collected = CollectReports.latest[-1] if CollectReports.latest else CollectReports()
    return FinishedRun(folder, collected.reports, getattr(collected, "info", None))


def startup_notices(*overrides: str, network: nn.Module | None = None) -> list[str]:
    """Return the start-up notices of `python train.py <overrides>`; `network` replaces the model's."""
    config = compose_overrides(*overrides)
    facts = load_facts(config)
    network = network or build.build_network(config, components.make_component(config, "model"), facts.federation)
    return notices.list_notices(config.choices, replace(facts, batch_norm=has_batch_statistics(network)), overrides)


def load_facts(composition: Composition) -> Facts:
    """Return the facts of a run that are known after loading its data."""
    objects = check.make_light_components(composition)
    return load.load_run_facts(composition, objects, check.make_components(composition, objects))


def make_components(*overrides: str, **replacements: Any) -> Components:
    """Return the components of `python train.py <overrides>`, with `others` in place of some."""
    config = compose_overrides(*overrides)
    return replace(check.make_components(config, check.make_light_components(config)), **replacements)


def same_bits(a: FinishedRun, b: FinishedRun) -> bool:
    return a.last.fingerprint == b.last.fingerprint and bool(np.array_equal(a.weights(), b.weights()))
