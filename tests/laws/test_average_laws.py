"""An average of the models (`eval.average=ema`) changes no round, with every choice of agg, server and deadline."""

from pathlib import Path

import pytest

from config_options import list_options
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from run_harness import FinishedRun, run_training

TINY = (
    *("clients=6", "cohort=3", "rounds=2", "client.epochs=1", "eval.clients_every=0", "split.limit=120"),
    *("heterogeneity=noise15", "proxy=noise", "proxy.n=20"),
)
REDUCED_WORK = {"agg=feddf": ("agg.steps=20",), "agg=rhfl": ("agg.batches=1",)}
METRICS = ("test/acc", "test/loss", "server_val/acc", "server_val/loss")
GROUPS = ("agg", "server", "deadline")


def outcome(logs: Path, *overrides: str) -> FinishedRun | str:
    """Return the run, or why it was rejected."""
    try:
        return run_training(logs, *TINY, *overrides)
    except IncompatibleConfig as rejection:
        return str(rejection)


@pytest.mark.parametrize("case", [f"{group}={option}" for group in GROUPS for option in list_options(group)])
@failure_hint("No component may read the average: it may only be loaded while a model is evaluated.")
def test_an_average_changes_no_round(case: str, tmp_path: Path) -> None:
    overrides = (case, *REDUCED_WORK.get(case, ()))
    plain, averaged = outcome(tmp_path / "0", *overrides), outcome(tmp_path / "1", *overrides, "eval.average=ema")
    if isinstance(plain, str) or isinstance(averaged, str):
        assert plain == averaged
        return
    for before, after in zip(plain.reports, averaged.reports, strict=True):
        assert after.fingerprint == before.fingerprint
        assert [after.metrics[f"{name}_unaveraged"] for name in METRICS] == [before.metrics[name] for name in METRICS]
