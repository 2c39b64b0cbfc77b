"""fedcohort on a workload: the Lightning run as `python train.py` makes it, tracking off, evaluation on.

python benchmarks/peer.py W1 [rounds] [processes] [device] [precision] [engine]

prints RESULT {json}, as `workloads.result` has it. rounds: the workload's own, or $BENCH_ROUNDS, where it is "-".
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn

from fedcohort.data.federation import Federation, Rows, Shard
from fedcohort.host.processes import make_repeatable
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.strategy import strategy_for
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.rng import NO_CLIENT, NO_ROUND, Rekeyed
from fedcohort.round.components import Components
from fedcohort.round.settings import Settings
from fedcohort.selector.base import Selector
from fedcohort.types import Population, ProbeResult, RoundContext, RoundReport, Selection
from workloads import WORKLOADS, cpu_seconds, result

EVALUATED = {"every": 1, "clients_every": 0}
CONFIGS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "configs")


class FixedCohorts(Selector[None]):
    """Everybody trains the same cohorts."""

    def __init__(self, chosen: Callable[[int], np.ndarray]) -> None:
        self.chosen = chosen

    def init(self, population: Population) -> None:
        """No state."""

    def select(self, state: None, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, None]:
        return Selection(self.chosen(ctx.round)), None


class AsTheyLie(Rekeyed):
    """A client's samples in the order of the bare loop; what a shuffle costs is spent all the same."""

    def rekey(self, seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> Any:  # noqa: ANN401  stands in for it
        self.draws = super().rekey(seed, purpose, round, client)
        return self

    def permutation(self, n: int) -> np.ndarray:
        self.draws.permutation(n)
        return np.arange(n)


class Loop(FederatedLoop):
    """The loop of every run, except for the order of samples."""

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        super().on_fit_start(trainer, pl_module)
        engine: Any = self.rounds.setup.engine
        getattr(engine, "trainer", engine).rng = AsTheyLie()


class Clock(Observer):
    """Wall and processor seconds between reports, of this process and its children.

    It watches in rank 0, which may be one of these: the result is printed there. It begins when it is made, after the
    imports, the data and the parts: what comes before the first round's end is the trainer's set-up, its processes
    and an evaluation.
    """

    def __init__(self, workload: str) -> None:
        self.workload, self.pid = workload, os.getpid()
        self.began = time.perf_counter()
        self.first = float("nan")
        self.ticks: list[float] = []
        self.busy: list[float] = []
        self.losses: list[float] = []

    def start(self, info: RunInfo) -> None:
        self.last, self.spent = time.perf_counter(), cpu_seconds(self.pid)

    def observe(self, report: RoundReport) -> None:
        now, spent = time.perf_counter(), cpu_seconds(self.pid)
        if report.step:
            self.ticks.append(now - self.last)
            self.busy.append(spent - self.spent)
            self.losses.append(report.metrics["test/loss"])
        if report.step == 1:
            self.first = now - self.began
        self.last, self.spent = time.perf_counter(), spent

    def finish(self, status: str) -> None:
        """Print `workloads.result`. first_s: from the making of this clock to the end of the first round."""
        found = {**result("fedcohort", self.workload, self.ticks, self.busy, self.losses), "first_s": self.first}
        sys.stdout.write("RESULT " + json.dumps(found) + "\n")
        sys.stdout.flush()


def part(group: str, word: str, **changes: object) -> Any:  # noqa: ANN401  of whatever class the yaml names
    node: Any = OmegaConf.to_container(OmegaConf.load(f"{CONFIGS}/{group}/{word}.yaml"))
    return instantiate({**node, **changes}, _convert_="all")


def federation_of(
    offsets: np.ndarray, x: Tensor, y: Tensor, x_eval: Tensor, y_eval: Tensor, n_classes: int
) -> Federation:
    """Exactly the workload's samples: nothing is held out of a client's data."""
    clients = len(offsets) - 1
    nothing = np.zeros(clients + 1, dtype=np.int64)
    held = Shard(x[:0], y[:0], y[:0], nothing)
    train = Shard(x, y, y, np.asarray(offsets, dtype=np.int64))
    counts, rates = np.zeros((clients, n_classes), dtype=np.int64), np.zeros(clients)
    server_val = Rows(x_eval[:100], y_eval[:100])
    return Federation("bench", n_classes, train, held, held, server_val, Rows(x_eval, y_eval), counts, rates)


def run(
    network: nn.Module,
    federation: Federation,
    chosen: Callable[[int], np.ndarray],
    cohort: int,
    batch: int,
    lr: float,
    rounds: int,
    processes: int = 1,
    device: str = "cpu",
    workload: str = "",
    **engine: object,
) -> Clock:
    """The run; every option as `train.py` has it, but for the fixed cohorts and the order of samples."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    groups = [g for g in Components.__dataclass_fields__ if g not in ("selector", "client")]
    words = {"agg": "fedavg", "server": "sgd", "objective": "ce", "samples": "all", "deadline": "wait_for_all"}
    words |= {"regulariser": "none", "codec": "none", "device": "shifted_exponential", "availability": "always"}
    words |= {"attack": "none", "proxy": "none", "augmentation": "none"}
    objects = {group: part(group, words[group]) for group in groups}
    client = part("client", "sgd", lr=lr, epochs=1, batch=batch)
    components = Components(selector=FixedCohorts(chosen), client=client, **objects)
    config: dict[str, Any] = {str(k): v for k, v in OmegaConf.load(f"{CONFIGS}/train.yaml").items_ex(resolve=False)}
    config["engine"] = {**OmegaConf.load(f"{CONFIGS}/engine/auto.yaml"), **engine}
    options = {**config, "cohort": cohort, "rounds": rounds, "eval": {**config["eval"], **EVALUATED}}
    settings = Settings.from_config(options, "bench")
    accelerator = "gpu" if device == "cuda" else "cpu"
    make_repeatable(accelerator)
    loop, clock = Loop(components, settings, federation), Clock(workload)
    loop.observers = [clock]
    loop.lay_out(network)
    trainer = pl.Trainer(
        accelerator=accelerator,
        strategy=strategy_for(accelerator, processes, 1),
        devices=processes,
        max_epochs=rounds,
        num_sanity_val_steps=-1,
        callbacks=[loop],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(ClientModule(network), datamodule=CohortDataModule(loop.federation, 1))
    return clock


def main(
    name: str,
    rounds: str = "-",
    processes: str = "1",
    device: str = "cpu",
    precision: str = "float32",
    kind: str = "auto",
) -> None:
    work = WORKLOADS[name]
    held = federation_of(work.offsets(), *work.data(), work.n_classes)
    asked = os.environ.get("BENCH_ROUNDS", work.rounds) if rounds == "-" else rounds
    sizes = (work.cohort, work.batch, work.lr, int(asked), int(processes), device, name)
    run(work.network(), held, work.chosen, *sizes, precision=precision, kind=kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
