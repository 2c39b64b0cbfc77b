"""Whole runs do not depend on options without effect, on the selector of all clients, or on the unit of time."""

import pytest

from config_options import list_options, make_component
from failure_hints import failure_hint
from fedcohort.types import RoundReport
from round_harness import run_small

TINY = (
    *("clients=6", "cohort=3", "rounds=2", "client.epochs=1", "split.limit=240", "heterogeneity=noise15"),
    *("model=mlp", "model.hidden=[8]", "proxy=noise", "checkpoint.every=1000"),
)
NEUTRAL = (
    "deadline=fixed deadline.k=1e6",
    "deadline=fixed deadline.k=1e6 deadline.partial_work=true",
    "deadline=smartpc_quorum deadline.share=1",
    "deadline=over_commit deadline.factor=1",
    "samples=random samples.fraction=1",
    "codec=subsample codec.rho=1",
    "availability=bernoulli availability.p=1",
    "attack=loss_inflation attack.factor=1 attack.shift=0",
    "regulariser=prox regulariser.mu=0",
    "server=momentum server.beta=0",
    "agg=feddf agg.steps=0",
    "eval.clients_sample=6",
)
NEUTRAL_OVERRIDES = {  # options that disable everything except the choice of clients
    "feddiverse": ("selector.pretrain=0", "selector.epochs=1"),
    "fedpns": ("selector.keep=1",),
    "pyramidfl": ("selector.overcommit=1", "selector.beta=0", "selector.low=0", "selector.high=0"),
}
COMPARED = ("clients/", "time/")  # those of the server follow from the model, whose fingerprint is compared


def compared_metrics(reports: list[RoundReport], *prefixes: str) -> list[dict[str, float]]:
    return [{k: v for k, v in report.metrics.items() if k.startswith(prefixes)} for report in reports]


@failure_hint(
    "Return the input unchanged at the neutral value of an option, and draw the same random numbers as without it."
)
def test_options_that_do_nothing_change_no_bit() -> None:
    plain, plain_loss = run_small(*TINY, "selector=powd")
    for overrides in NEUTRAL:
        neutral, loss = run_small(*TINY, "selector=powd", *overrides.split())
        assert loss == plain_loss, overrides
        assert [report.fingerprint for report in plain] == [report.fingerprint for report in neutral], overrides
        assert compared_metrics(plain, *COMPARED) == compared_metrics(neutral, *COMPARED), overrides


@failure_hint(
    "A selector changes training by Selection and AggregationOverride only; put other options in `NEUTRAL_OVERRIDES`."
)
def test_selectors_of_all_clients_train_equally() -> None:
    all_clients = (*TINY, "cohort=6", "agg=scaffold", "server=momentum")
    full, full_loss = run_small(*all_clients, "selector=full")
    for choice in list_options("selector"):
        selector = make_component("selector", choice)
        if "group_counts" in selector.needs or selector.may_choose_fewer:
            continue
        reports, loss = run_small(*all_clients, f"selector={choice}", *NEUTRAL_OVERRIDES.get(choice, ()))
        assert loss == full_loss, choice
        assert reports[-1].fingerprint == full[-1].fingerprint, choice
        assert compared_metrics(reports, "clients/") == compared_metrics(full, "clients/"), choice


@pytest.mark.parametrize(
    "overrides", ["selector=flash deadline=fixed", "selector=oort deadline=fedbalancer deadline.w=1"]
)
@failure_hint("Compare seconds with seconds only: divide durations by a duration, never by a constant.")
def test_the_unit_of_time_changes_only_times(overrides: str) -> None:
    """The unit is multiplied by eight, because a power of two adds no rounding error."""
    unit_1, unit_8 = (run_small(*TINY, *overrides.split(), f"device.unit_s={unit}")[0] for unit in ("1", "8"))
    assert [report.fingerprint for report in unit_1] == [report.fingerprint for report in unit_8]
    times = [(a.metrics["time/virtual_s"], b.metrics["time/virtual_s"]) for a, b in zip(unit_1, unit_8, strict=True)]
    assert all(8 * a == b for a, b in times)
