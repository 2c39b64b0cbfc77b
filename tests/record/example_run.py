"""A generated run without an engine: learning curves, late and absent clients, a posterior."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.record.observer import Observer, RunInfo
from fedcohort.types import RoundReport


def make_run_info(
    folder: Path, *, clients: int = 12, classes: int = 10, rounds: int = 6, start: int = 0, **options: Any
) -> RunInfo:
    """Return a run with unequal clients: a third has label skew, a fifth has label noise."""
    rng = np.random.default_rng(7)
    size = rng.lognormal(4, 0.5, clients).astype(np.int64) + 10
    few = rng.random(clients) < 0.3
    shares = [rng.dirichlet(np.full(classes, 0.1 if skewed else 100.0)) for skewed in few]
    choices = {
        "selector": "flash",
        "agg": "scaffold",
        "dataset": "fashion_mnist",
        "heterogeneity": "noniid30_noise15",
        "model": "cnn",
        "server": "sgd",
    }
    facts: dict[str, Any] = {
        "folder": folder,
        "name": folder.name,
        "choices": choices,
        "config": {
            "seed": 0,
            "rounds": rounds,
            "cohort": 4,
            "name": None,
            "selector": {"_target_": "fedcohort.selector.flash.Flash", "discount": 0.99, "prior": [0.0, 1.0]},
            "client": {"lr": 0.1, "epochs": 5},
            "dataset": {"_target_": "fedcohort.dataset.fashion_mnist.FashionMnist", "name": "fashion_mnist"},
            "paths": {"logs": "logs"},
        },
        "config_hash": "a1b2c3d4",
        "seed": 0,
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "versions": {"fedcohort": "0.1.0", "torch": "2.13.0"},
        "tags": {"sweep_id": "s1"},
        "n_train": size,
        "class_counts": np.array([rng.multinomial(n, p) for n, p in zip(size, shares, strict=True)]),
        "noise_rate": np.where(rng.random(clients) < 0.2, 0.15, 0.0),
        "expected_s": size * (1 + rng.exponential(1.0, clients)),
        "n_params": 61_706,
        "rounds": rounds,
        "start": start,
    }
    return RunInfo(**{**facts, **options})


def make_report(step: int, *, clients: int = 12, cohort: int = 4, trace: bool = True) -> RoundReport:
    """Return the report of a step; equal steps have equal reports."""
    rng = np.random.default_rng(step)
    available = rng.random(clients) < 0.9
    true_scores = np.random.default_rng(step + 10_000).random(clients) * np.linspace(0.6, 1.2, clients)
    ready = np.flatnonzero(available)
    chosen = np.sort(ready[np.argsort(-true_scores[ready])[: min(cohort, len(ready)) if step else 0]])
    is_late = rng.random(len(chosen)) < 0.15
    arrived = chosen[~is_late]
    return RoundReport(
        step=step,
        cohort=chosen.astype(np.int64),
        arrived=arrived.astype(np.int64),
        metrics=_metrics(step, rng, len(chosen), len(arrived)),
        clients=_columns(clients, available, chosen, arrived, rng) if step else {},
        trace=_trace(step, rng) if trace and step else {},
        fingerprint=f"{step:04x}-{int(chosen.sum()):04x}",
    )


def _metrics(step: int, rng: np.random.Generator, chosen: int, arrived: int) -> dict[str, float]:
    accuracy = 0.1 + 0.77 * (1 - np.exp(-step / 12)) + 0.012 * rng.standard_normal() * (step > 0)
    mean = accuracy - 0.03
    return {
        "test/acc": accuracy,
        "test/loss": 2.3 * np.exp(-step / 14) + 0.42 + 0.03 * rng.standard_normal(),
        "test/acc_best": accuracy,
        "server_val/acc": accuracy + 0.01,
        "server_val/loss": 2.3 * np.exp(-step / 14) + 0.40 + 0.03 * rng.standard_normal(),
        "clients/acc_mean": mean,
        "clients/acc_var": 210.0 * np.exp(-step / 40),
        "clients/acc_worst5": max(mean - 0.3, 0.0),
        "clients/acc_best5": min(mean + 0.1, 1.0),
        "clients/jain": 1 - 0.3 * np.exp(-step / 20),
        "round/cohort": float(chosen),
        "round/arrived": float(arrived),
        "time/virtual_s": 310.0 * step,
        "comm/down_bytes": 2.5e6 * step,
        "comm/up_bytes": 2.4e6 * step,
        "comm/probe_bytes": 4e3 * step,
        "comp/client_flops": 3.2e11 * step,
        "comp/server_flops": 1e9 * step,
        "select/share_max": 0.05,
        "select/share_min": 0.0,
    }


def _columns(
    clients: int, available: np.ndarray, chosen: np.ndarray, arrived: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    ids = np.arange(clients)
    loss = np.full(clients, np.nan)
    loss[arrived] = rng.random(len(arrived))
    return {
        "available": available,
        "selected": np.isin(ids, chosen),
        "arrived": np.isin(ids, arrived),
        "score": rng.standard_normal(clients),
        "part_explore": rng.random(clients),
        "units": np.where(np.isin(ids, arrived), 5, 0),
        "finish_s": rng.exponential(300.0, clients),
        "train_loss": loss,
    }


def _trace(step: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    names = ("theta[train loss]", "theta[val loss]", "theta[duration]", "theta[reward]")
    goals = (0.4, -0.2, -0.35, 0.1)
    fade = 1 - np.exp(-step / 8)
    return {
        name: (goal * fade + 0.02 * rng.standard_normal(), 0.5 / np.sqrt(step))
        for name, goal in zip(names, goals, strict=True)
    }


def replay_run(observers: list[Observer], facts: RunInfo, *, last: int | None = None, status: str = "finished") -> None:
    """Call observers like the engine, from `facts.start` to round `last`."""
    for observer in observers:
        observer.start(facts)
    for step in list_steps(facts, last):
        round_report = make_report(step, clients=len(facts.n_train), cohort=int(facts.config["cohort"]))
        for observer in observers:
            observer.observe(round_report)
    for observer in observers:
        observer.finish(status)


def list_steps(facts: RunInfo, last: int | None = None) -> Iterator[int]:
    """Yield the steps of a process; a resumed run omits step 0."""
    first = facts.start + 1 if facts.start else 0
    yield from range(first, (facts.rounds if last is None else last) + 1)
