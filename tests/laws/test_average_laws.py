"""An average of the models (`eval.average=ema`) changes no round, with every choice of agg, server and deadline."""

import pytest

from config_options import list_options
from failure_hints import failure_hint
from fedcohort.errors import IncompatibleConfig
from fedcohort.types import RoundReport
from round_harness import run_small

TINY = (
    *("clients=6", "cohort=3", "rounds=2", "client.epochs=1", "eval.clients_every=0", "split.limit=120"),
    *("heterogeneity=noise15", "proxy=noise", "proxy.n=20"),
)
REDUCED_WORK = {"agg=feddf": ("agg.steps=20",), "agg=rhfl": ("agg.batches=1",)}
GROUPS = ("agg", "server", "deadline")


def outcome(*overrides: str) -> tuple[list[RoundReport], float] | str:
    """Return the reports and the final test loss of a run, or why it was rejected."""
    try:
        return run_small(*TINY, *overrides)
    except IncompatibleConfig as rejection:
        return str(rejection)


@pytest.mark.parametrize("case", [f"{group}={option}" for group in GROUPS for option in list_options(group)])
@failure_hint("No component may read the average: it may only be loaded while a model is evaluated.")
def test_an_average_changes_no_round(case: str) -> None:
    overrides = (case, *REDUCED_WORK.get(case, ()))
    plain, averaged = outcome(*overrides), outcome(*overrides, "eval.average=ema")
    if isinstance(plain, str) or isinstance(averaged, str):
        assert plain == averaged
        return
    assert [report.fingerprint for report in averaged[0]] == [report.fingerprint for report in plain[0]]
    assert averaged[1] == plain[1]
