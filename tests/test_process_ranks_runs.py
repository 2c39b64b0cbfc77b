"""Any number of ranks logs, tabulates and shows to callbacks what one process does, to rounding.

In float64, so that adaptive selectors choose the same; the server's data are sorted by label, so that a rank's part of
them is not like the whole.
"""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import pytest
import torch

import run_harness
from fedcohort.component import Facts
from fedcohort.data.federation import Federation, ServerSamples, Shard
from fedcohort.startup import build, load
from run_harness import run_training

CALLBACKS = "lightning.pytorch.callbacks"
CALLBACK_OVERRIDES = (
    *("+callback.journal._target_=fedcohort.record.journal.Journal",),
    *("+callback.summary._target_=fedcohort.console.summary.Summary", "+callback.summary.full=false"),
    *("+callback.seen._target_=run_harness.MetricsRecorder",),
    *("split.limit=600",),
    *(f"+callback.best._target_={CALLBACKS}.ModelCheckpoint", "+callback.best.monitor=server_val/loss"),
)
HALT = (f"+callback.halt._target_={CALLBACKS}.EarlyStopping", "+callback.halt.monitor=server_val/loss")
CASES = {
    "powd": ("selector=powd", "agg=fedavgm", "attack=loss_inflation", "engine.slices=3", "cohort=5", "model=mlp"),
    "scaffold": (
        *("agg=scaffold", "client=adam", "availability=bernoulli", "availability.p=0.15"),
        *("samples=fedbalancer", "samples.w=1", "deadline=fedbalancer", "deadline.w=1"),
    ),
    "fedss": ("samples=fedss_loss", "partition=quantity", "agg=scaffold"),  # only clients with many samples keep a list
    "oracle": ("selector=oracle_greedy", "agg=feddf", "agg.steps=5", "proxy=client_heldout", "codec=quant"),
    "alie": ("attack=alie", "attack.fraction=0.3", "agg=trimmed_mean", "cohort=6"),  # ranks share what attackers know
    "late": ("deadline=buffered", "deadline.buffer=3", "agg=scaffold", "selector=oort", "device=shifted_exponential"),
    "fedpns": ("selector=fedpns", "deadline=fixed", "samples=random", *HALT, "+callback.halt.patience=1"),
}


class MetricsRecorder(pl.Callback):
    """Writes the metrics that a callback may monitor, each rank into a separate file."""

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        results = {name: float(value) for name, value in trainer.callback_metrics.items()}
        with (Path(trainer.default_root_dir) / f"seen-{trainer.global_rank}").open("a") as file:
            file.write(json.dumps(results) + "\n")


def sort_by_label(rows: ServerSamples) -> ServerSamples:
    order = torch.argsort(rows.y, stable=True)
    return ServerSamples(rows.x[order].double(), rows.y[order])


def convert_to_double(shard: Shard) -> Shard:
    return replace(shard, x=shard.x.double())


@pytest.fixture
def federation(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Fields of the federation that a test replaces."""
    built, network = load.load_run_facts, build.build_network
    changes: dict[str, Any] = {}

    def sorted_(*parts: Any) -> Facts:
        facts = built(*parts)
        held_data = facts.federation
        clients: dict[str, Any] = {
            name: convert_to_double(getattr(held_data, name)) for name in ("train", "val", "test")
        }
        server: dict[str, Any] = {
            name: sort_by_label(getattr(held_data, name)) for name in ("server_val", "server_test")
        }
        attribute = np.arange(len(held_data.server_test.y)) % 2
        proxy = None if held_data.proxy is None else held_data.proxy.double()
        held_data = replace(held_data, **clients, **server, server_test_attribute=attribute, proxy=proxy)
        return replace(
            facts, federation=replace(held_data, **{name: change(held_data) for name, change in changes.items()})
        )

    monkeypatch.setattr(load, "load_run_facts", sorted_)
    monkeypatch.setattr(build, "build_network", lambda *parts: network(*parts).double())
    monkeypatch.setattr(run_harness, "MetricsRecorder", MetricsRecorder, raising=False)
    return changes


def run(logs: Path, ranks: int, *overrides: str) -> Path:
    return run_training(logs / str(ranks), *overrides, *CALLBACK_OVERRIDES, f"trainer.devices={ranks}").folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_same_journal(first: Path, second: Path) -> None:
    for a, b in zip(lines(first / "journal.jsonl"), lines(second / "journal.jsonl"), strict=True):
        assert b["metrics"] == pytest.approx(a["metrics"], rel=1e-9, abs=1e-9, nan_ok=True)
        assert (a["cohort"], a["arrived"]) == (b["cohort"], b["arrived"])
        assert b["trace"].keys() == a["trace"].keys()


def assert_same_rest(single: Path, second_run: Path) -> None:
    first, second = (pd.read_parquet(folder / "clients.parquet") for folder in (single, second_run))
    pd.testing.assert_frame_equal(first, second, rtol=1e-9, atol=1e-9)
    a, b = (json.loads((folder / "summary.json").read_text()) for folder in (single, second_run))
    for part in ("final", *a["best"]):
        values = [result["final"] if part == "final" else result["best"].get(part) for result in (a, b)]
        assert values[1] == pytest.approx(values[0], rel=1e-9, abs=1e-9, nan_ok=True)
    weights = [torch.load(folder / "weights.pt", weights_only=True) for folder in (single, second_run)]
    torch.testing.assert_close(*weights, rtol=0, atol=1e-9)
    assert [p.name for p in (single / "checkpoints").iterdir()] == [
        p.name for p in (second_run / "checkpoints").iterdir()
    ]


@pytest.mark.parametrize(
    ("case", "ranks"),
    [
        ("powd", (3,)),
        ("scaffold", (3,)),
        ("oracle", (2,)),
        ("fedpns", (3,)),
        ("fedss", (2,)),
        ("alie", (2,)),
        ("late", (2, 3)),
    ],
)
def test_ranks_log_what_one_process_logs(
    case: str, ranks: tuple[int, ...], tmp_path: Path, federation: dict[str, Any]
) -> None:
    if case == "scaffold":  # fewer samples than ranks
        federation["server_val"] = lambda held_data: ServerSamples(
            held_data.server_val.x[-2:], held_data.server_val.y[-2:]
        )
    first_run = run(tmp_path, 1, *CASES[case])
    for count in ranks:
        other_run = run(tmp_path, count, *CASES[case])
        assert_same_journal(first_run, other_run)
        assert_same_rest(first_run, other_run)
        for rank in range(count):
            for own_values, expected in zip(
                lines(first_run / "seen-0"), lines(other_run / f"seen-{rank}"), strict=True
            ):
                assert expected == pytest.approx(own_values, rel=1e-6)
                assert expected.keys() >= {"server_val/acc", "server_val/loss"} or not expected


def test_a_nan_loss_in_one_rank_is_nan_in_all_ranks(tmp_path: Path, federation: dict[str, Any]) -> None:
    """The update of the last rank overflows; the metrics of the first rank show it, and all ranks stop together."""

    def overflow(held_data: Federation) -> ServerSamples:
        x = held_data.server_val.x.clone()
        x[-1] = math.inf
        return ServerSamples(x, held_data.server_val.y)

    federation["server_val"] = overflow
    folder = run(tmp_path, 2, *HALT)
    journal = lines(folder / "journal.jsonl")
    assert [line["step"] for line in journal] == [0, 1]
    assert all(math.isnan(line["metrics"]["server_val/loss"]) for line in journal)
    assert math.isfinite(journal[-1]["metrics"]["test/loss"])
