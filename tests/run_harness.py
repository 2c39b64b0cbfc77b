"""A run in this process, from typed words to reports: what `python train.py` does, without its start-up."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from hydra import compose, initialize_config_dir

from fedcohort import assemble, run
from fedcohort.types import RoundReport
from yaml_words import CONFIGS

SMALL = (
    "clients=12",
    "cohort=4",
    "rounds=3",
    "model=logreg",
    "client.epochs=2",
    "checkpoint.every_s=0",
    "callback=none",
    "logger=none",
)


@dataclass
class Collect:
    """An observer that keeps everything it is told, of the latest run."""

    latest: ClassVar[list["Collect"]] = []
    reports: list[RoundReport] = field(default_factory=list)
    status: str = ""

    def start(self, info: Any) -> None:
        self.info = info
        Collect.latest.append(self)

    def observe(self, report: RoundReport) -> None:
        self.reports.append(report)

    def finish(self, status: str) -> None:
        self.status = status


@dataclass(frozen=True)
class Ran:
    folder: Path
    reports: list[RoundReport]
    info: Any

    @property
    def last(self) -> RoundReport:
        return self.reports[-1]

    @property
    def choices(self) -> list[list[int]]:
        return [report.cohort.tolist() for report in self.reports if report.step]

    def weights(self) -> torch.Tensor:
        state = torch.load(self.folder / "weights.pt", weights_only=True)
        return torch.cat([tensor.flatten().double() for tensor in state.values()])


def made(*overrides: str) -> assemble.Composed:
    """The composed config of `python train.py <overrides>`."""
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = compose("train", overrides=list(overrides), return_hydra_config=True)
    return assemble.composed(cfg, cfg.hydra.runtime.choices, overrides)


def go(logs: Path, *overrides: str, small: bool = True) -> Ran:
    """Run it; the reports are those of this process."""
    given = {word.split("=")[0].lstrip("+~") for word in overrides}
    base = [word for word in SMALL if small and word.split("=")[0] not in given]
    extra = [f"paths.logs={logs}", "+callback.collect._target_=run_harness.Collect"]
    Collect.latest.clear()
    folder = run.run(made(*base, *overrides, *extra))
    seen = Collect.latest[-1] if Collect.latest else Collect()
    return Ran(folder, seen.reports, getattr(seen, "info", None))


def same_bits(a: Ran, b: Ran) -> bool:
    return a.last.fingerprint == b.last.fingerprint and bool(np.array_equal(a.weights(), b.weights()))
