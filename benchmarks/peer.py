"""Run one workload with fedcohort's Lightning loop, with evaluation and without tracking.

    python benchmarks/peer.py W1 [rounds] [processes] [device] [precision] [engine]

It prints RESULT and the JSON of `workloads.result`. `-` for the rounds means $BENCH_ROUNDS, or the workload's number.
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

from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.host.processes import make_gpu_results_repeatable
from fedcohort.lightning.data import CohortDataModule
from fedcohort.lightning.loop import FederatedLoop
from fedcohort.lightning.module import ClientModule
from fedcohort.lightning.strategy import make_lightning_strategy
from fedcohort.record.observer import Observer, RunInfo
from fedcohort.rng import NO_CLIENT, NO_ROUND, RekeyedGenerator
from fedcohort.round.components import Components
from fedcohort.round.settings import Settings
from fedcohort.round.setup import choose_memory_layout
from fedcohort.selector.base import Selector
from fedcohort.types import Population, ProbeResult, RoundContext, RoundReport, Selection
from workloads import WORKLOADS, cpu_seconds, result

EVALUATION = {"every": 1, "clients_every": 0}
CONFIGS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "configs")


class FixedCohorts(Selector[None]):
    """Selector of the workload's cohorts, which are the same for all peers."""

    def __init__(self, cohort_of: Callable[[int], np.ndarray]) -> None:
        self.cohort_of = cohort_of

    def init(self, population: Population) -> None:
        """Return None: the cohorts do not depend on any state."""

    def select(self, state: None, ctx: RoundContext, probes: Mapping[str, ProbeResult]) -> tuple[Selection, None]:
        """Return the workload's cohort of this round."""
        return Selection(self.cohort_of(ctx.round)), None


class StoredOrder(RekeyedGenerator):
    """Generator that keeps samples in stored order, like bare.py, but still spends the time of a shuffle."""

    def rekey(self, seed: int, purpose: str, round: int = NO_ROUND, client: int = NO_CLIENT) -> Any:  # noqa: ANN401  replaces a generator
        """Derive the generator that spends the time of a shuffle; see `Rekeyed.rekey`."""
        self.draws = super().rekey(seed, purpose, round, client)
        return self

    def permutation(self, n: int) -> np.ndarray:
        """Draw a permutation of n samples, and return their stored order."""
        self.draws.permutation(n)
        return np.arange(n)


class Loop(FederatedLoop):
    """The loop of train.py, except that samples keep their stored order."""

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Replace the engine's generator once the loop has made it."""
        super().on_fit_start(trainer, pl_module)
        engine: Any = self.round_runner.setup.engine
        getattr(engine, "trainer", engine).rng = StoredOrder()


class VirtualClock(Observer):
    """Measure wall and processor seconds per round, of this process and its children, and print them in rank 0.

    The first round is timed from the construction of this clock, after imports, data and components. It therefore
    includes the trainer's set-up, the start of its processes and the evaluation of the initial model.
    """

    def __init__(self, workload: str) -> None:
        self.workload, self.pid = workload, os.getpid()
        self.start_s = time.perf_counter()
        self.first_round_s = float("nan")
        self.round_seconds: list[float] = []
        self.cpu_seconds_of_rounds: list[float] = []
        self.losses: list[float] = []

    def start(self, info: RunInfo) -> None:
        """Start timing the first round."""
        self.round_start_s, self.cpu_s = time.perf_counter(), cpu_seconds(self.pid)

    def observe(self, report: RoundReport) -> None:
        """Record the seconds and the test loss of the round that has ended."""
        now_s, cpu_s = time.perf_counter(), cpu_seconds(self.pid)
        if report.step:
            self.round_seconds.append(now_s - self.round_start_s)
            self.cpu_seconds_of_rounds.append(cpu_s - self.cpu_s)
            self.losses.append(report.metrics["test/loss"])
        if report.step == 1:
            self.first_round_s = now_s - self.start_s
        self.round_start_s, self.cpu_s = time.perf_counter(), cpu_s

    def finish(self, status: str) -> None:
        """Print `workloads.result`, and `first_s`: seconds from this clock's construction to the first round's end."""
        summary = result("fedcohort", self.workload, self.round_seconds, self.cpu_seconds_of_rounds, self.losses)
        sys.stdout.write("RESULT " + json.dumps({**summary, "first_s": self.first_round_s}) + "\n")
        sys.stdout.flush()


def make_component(group: str, name: str, **changes: object) -> Any:  # noqa: ANN401  the class is in the yaml file
    """Return a component with the options of its yaml file, replaced by `changes`."""
    node: Any = OmegaConf.to_container(OmegaConf.load(f"{CONFIGS}/{group}/{name}.yaml"))
    return instantiate({**node, **changes}, _convert_="all")


def make_federation(
    offsets: np.ndarray, x: Tensor, y: Tensor, x_eval: Tensor, y_eval: Tensor, n_classes: int
) -> Federation:
    """Return a federation of the workload's samples, with empty validation and test parts for the clients."""
    clients = len(offsets) - 1
    zero_offsets = np.zeros(clients + 1, dtype=np.int64)
    empty = Shard(x[:0], y[:0], y[:0], zero_offsets)
    train = Shard(x, y, y, np.asarray(offsets, dtype=np.int64))
    counts, rates = np.zeros((clients, n_classes), dtype=np.int64), np.zeros(clients)
    server_val = ServerSamples(x_eval[:100], y_eval[:100])
    return Federation("bench", n_classes, train, empty, empty, server_val, ServerSamples(x_eval, y_eval), counts, rates)


def run(
    network: nn.Module,
    federation: Federation,
    cohort_of: Callable[[int], np.ndarray],
    cohort: int,
    batch: int,
    lr: float,
    rounds: int,
    processes: int = 1,
    device: str = "cpu",
    workload: str = "",
    **engine: object,
) -> VirtualClock:
    """Train with the options of train.py, except for the fixed cohorts and the stored order of samples."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    groups = [g for g in Components.__dataclass_fields__ if g not in ("selector", "client")]
    choices = {"agg": "fedavg", "server": "sgd", "objective": "ce", "samples": "all", "deadline": "wait_for_all"}
    choices |= {"regulariser": "none", "codec": "none", "device": "shifted_exponential", "availability": "always"}
    choices |= {"attack": "none", "proxy": "none", "augmentation": "none", "signal_noise": "none"}
    objects = {group: make_component(group, choices[group]) for group in groups}
    client = make_component("client", "sgd", lr=lr, epochs=1, batch=batch)
    components = Components(selector=FixedCohorts(cohort_of), client=client, **objects)
    config: dict[str, Any] = {str(k): v for k, v in OmegaConf.load(f"{CONFIGS}/train.yaml").items_ex(resolve=False)}
    config["engine"] = {**OmegaConf.load(f"{CONFIGS}/engine/auto.yaml"), **engine}
    options = {**config, "cohort": cohort, "rounds": rounds, "eval": {**config["eval"], **EVALUATION}}
    settings = Settings.from_config(options, "bench")
    accelerator = "gpu" if device == "cuda" else "cpu"
    make_gpu_results_repeatable(accelerator, str(engine.get("precision", "float32")))
    loop, clock = Loop(components, settings, federation), VirtualClock(workload)
    loop.observers = [clock]
    choose_memory_layout(settings, network, federation)
    trainer = pl.Trainer(
        accelerator=accelerator,
        strategy=make_lightning_strategy(accelerator, processes, 1),
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
    """Run a workload; the arguments are those of the command line."""
    work = WORKLOADS[name]
    federation = make_federation(work.offsets(), *work.data(), work.n_classes)
    n_rounds = os.environ.get("BENCH_ROUNDS", work.rounds) if rounds == "-" else rounds
    arguments = (work.cohort, work.batch, work.lr, int(n_rounds), int(processes), device, name)
    run(work.network(), federation, work.cohort_of, *arguments, precision=precision, kind=kind)


if __name__ == "__main__":
    main(*sys.argv[1:])
