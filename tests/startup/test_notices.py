"""Notices before a run starts, about options that work badly together."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from config_options import make_component
from engine_harness import make_federation
from fedcohort.component import Facts
from fedcohort.flat import has_batch_statistics
from fedcohort.startup.notices import list_evaluation_notices, list_notices
from run_harness import compose_overrides, make_components, run_training, startup_notices

CLEAN = "heterogeneity=noniid30"
LOSS_LISTS = ("samples=fedbalancer", "deadline=fixed")
PACE_CONTROL = ("samples=fedbalancer", "deadline=fedbalancer")
NOISY = "with {}, clients with high losses get more weight, and label noise (label_noise=beta) also raises losses"
WEIGHTS_NOTICE = "changes the weights of arriving clients only, and so favours clients that train often"
TWO_LOSSES = "reads the loss that clients minimise, but its robust loss has other weights than"
RHFL_NOTICE = (
    "agg=rhfl compares a client's loss with that of its last participation: clients that are away for longer seem"
)
RHFL = ("agg=rhfl", "proxy=noise")
ALL_KEPT = "selector=fedpns keeps ceil(keep x m) of the m clients that arrive in a round, which is all of them"
INSTANT_NOTICE = "has no effect: it drops late clients, but work takes no time with device=instant"
ALL_FIRST = "trains all ready clients in round 1, whatever the cohort"
ONE_PASS = ("selector=ucb_cs", "client.epochs=1", "client.batch=20", CLEAN)


@pytest.mark.parametrize(
    ("overrides", "lines"),
    [
        (("selector=flash", "agg=scaffold"), [ALL_FIRST]),
        (("agg=fedmaba", "selector=flash", CLEAN), [ALL_FIRST]),
        # one robust loss
        (("selector=flash", "objective=flash_robust"), [ALL_FIRST]),
        (("selector=flash", "objective=flash_robust", "objective.beta=8"), [TWO_LOSSES, ALL_FIRST]),
        (("selector=flash", "objective=flash_robust", "objective.beta=8", "selector.beta=8"), [ALL_FIRST]),
        (("selector=flash", "selector.beta=8"), [ALL_FIRST]),
        (("selector=flash_progress", "objective=flash_robust", "selector.beta=8"), [TWO_LOSSES, ALL_FIRST]),
        (
            ("selector=flash_progress", "objective=flash_robust", "selector.beta=8", "selector.features=[duration]"),
            [ALL_FIRST],
        ),
        # more than the cohort, and under a name of its own
        (("selector=low_ratio", CLEAN), [ALL_FIRST]),
        (("selector=neural_bandit", CLEAN), [ALL_FIRST, "approximates a paper whose text was not available"]),
        (("selector=hcsfed", "selector.variant=feddiverse_paper", CLEAN), [ALL_FIRST]),
        # wrong labels have high losses
        (("selector=powd",), [NOISY.format("selector=powd")]),
        (("selector=powd", CLEAN), []),
        (("selector=powd", "label_noise=none"), []),
        (("selector=oort", "agg=term"), [NOISY.format("selector=oort and agg=term")]),
        (("agg=term", "agg.tilt=-1"), []),
        # work that is added is dropped with the rest
        (("selector=pyramidfl", CLEAN), []),
        (("selector=pyramidfl", "deadline=over_commit", CLEAN), []),
        (
            ("selector=pyramidfl", "deadline=fixed", CLEAN),
            ["selector=pyramidfl gives fast clients extra epochs, which deadline=fixed discards"],
        ),
        (("selector=pyramidfl", "selector.beta=0", "deadline=fixed", CLEAN), []),
        (("selector=pyramidfl", "deadline=fixed", "deadline.partial_work=true", CLEAN), []),
        (("agg=qffl", "agg.q=0"), []),
        (("agg=propfair",), [NOISY.format("objective=propfair")]),
        ((*LOSS_LISTS,), ["samples=fedbalancer prefers samples with high losses, but wrong labels"]),
        ((*LOSS_LISTS, CLEAN), []),
        ((*LOSS_LISTS, "samples.w=5", CLEAN), []),
        ((*PACE_CONTROL, CLEAN), []),
        ((*PACE_CONTROL, "samples.w=5", "deadline.w=5", CLEAN), []),
        (
            (*PACE_CONTROL, "samples.w=5", CLEAN),
            ["deadline=fedbalancer and samples=fedbalancer share one controller in the paper, but samples.w differs"],
        ),
        (("deadline=fedbalancer", "deadline.w=5", CLEAN), []),
        (
            ("deadline=fedbalancer", "deadline.grid=1", CLEAN),
            ["deadline=fedbalancer compares deadlines in seconds, but device=shifted_exponential has times in an"],
        ),
        (("deadline=fedbalancer", "deadline.grid=1", "device=phones", CLEAN), []),
        ((*LOSS_LISTS, "samples.noise=0.5", CLEAN), ["samples.noise=0.5 lowers the threshold of samples=fedbalancer"]),
        # weights that only those who arrive move
        (("agg=afl", CLEAN), [f"agg=afl {WEIGHTS_NOTICE}"]),
        (("agg=afl", "agg.gamma=0", CLEAN), []),
        (("agg=afl", "agg.unbiased=true", CLEAN), []),
        (("agg=fedsgd", "client.epochs=3"), ["client.epochs=3 has no effect: client.steps=1 is set"]),
        (("client.epochs=2", "client.steps=3"), ["client.epochs=2 has no effect: client.steps=3 is set"]),
        (
            ("selector=oracle_clean",),
            ["selector=oracle_clean is an oracle, which no server could run: it reads noise_rate"],
        ),
        (("agg=afl", "cohort=50", CLEAN), []),
        (("agg=afl", "selector=full", CLEAN), []),
        (("agg=afl", "cohort=50", "availability=bernoulli", CLEAN), [f"agg=afl {WEIGHTS_NOTICE}"]),
        (
            ("agg=afl", "cohort=50", "deadline=fixed", CLEAN),
            ["choose deadline=wait_for_all, or agg.unbiased=true"],
        ),
        (("agg=afl", "cohort=50", "deadline=fixed", "device=instant", CLEAN), [INSTANT_NOTICE]),
        (("agg=fedmaba", "agg.sync=literal", CLEAN), [f"agg=fedmaba {WEIGHTS_NOTICE}"]),
        (("agg=fedmaba", "agg.sync=literal", "agg.alpha=0", CLEAN), []),
        (
            ("selector=fedpns", "cohort=4"),
            [ALL_KEPT],
        ),
        (("selector=fedpns", "cohort=5"), []),
        # of five arriving clients one is left out, of four none
        (("selector=fedpns", "cohort=5", "deadline=smartpc_quorum"), [ALL_KEPT]),
        (("selector=fedpns", "cohort=4", "deadline=over_commit"), [ALL_KEPT]),
        (("selector=fedpns", "cohort=4", "deadline=over_commit", "device=instant"), [INSTANT_NOTICE]),
        (("selector=fedpns", "cohort=5", "deadline=fixed"), []),
        (("selector=hcsfed", "cohort=3"), []),
        (("selector=hcsfed", "cohort=3", "selector.strata=3"), []),
        (("selector=hcsfed", "cohort=3", "selector.strata=4", "deadline=over_commit"), []),
        # half of some thirty samples are one batch
        (ONE_PASS, []),
        (
            (*ONE_PASS, "samples=random"),
            ["selector=ucb_cs explores in proportion to the spread of a client's batch losses"],
        ),
        (
            ("selector=hcsfed", "cohort=3", "selector.strata=4"),
            ["selector=hcsfed has more strata than the cohort has clients"],
        ),
        (("selector=fedpns", "cohort=4", "selector.keep=0.75"), []),
        (("availability=diurnal",), []),
        (
            ("availability=diurnal", "device=instant"),
            ["availability=diurnal follows the virtual clock, which does not advance with device=instant and deadl"],
        ),
        (RHFL, [RHFL_NOTICE]),
        ((*RHFL, "cohort=50"), []),
        (
            (*RHFL, "availability=bernoulli", "deadline=fixed"),
            [
                f"{RHFL_NOTICE} to learn faster, and gain weight "
                "(with cohort=clients and availability=always and deadline=wait"
            ],
        ),
        ((*RHFL, "agg.beta=0"), []),
    ],
)
def test_notices_name_the_disadvantage_of_a_combination(overrides: tuple[str, ...], lines: list[str]) -> None:
    notices_found = startup_notices(*overrides)
    assert len(notices_found) == len(lines)
    assert all(line in notice for line, notice in zip(lines, notices_found, strict=True))


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(4), nn.SyncBatchNorm(4), nn.GroupNorm(2, 4)])
def test_batch_norm_statistics_are_always_weighted_by_samples(norm: nn.Module) -> None:
    parts, federation, composition = (
        make_components("dataset=synthetic"),
        make_federation(),
        compose_overrides("dataset=synthetic"),
    )
    for choice in ("scaffold", "fedmgda_plus", "fednova", "qffl", "fedavg", "afl"):
        fair = replace(parts, agg=make_component("agg", choice))
        batch_norm = has_batch_statistics(nn.Sequential(nn.Linear(2, 4), norm))
        facts = Facts(fair, {**composition.config, "cohort": federation.n_clients}, federation, batch_norm=batch_norm)
        notice_lines = list_notices({**composition.choices, "agg": choice}, facts)
        assert len(notice_lines) == (choice not in ("fedavg", "afl") and not isinstance(norm, nn.GroupNorm))
        assert all(
            "the network has batch norm" in line and f"while agg={choice} combines" in line for line in notice_lines
        )


@pytest.mark.parametrize(("rank", "has_notice"), [(16, True), (4, False)])
def test_a_codec_without_effect_gives_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rank: int, has_notice: bool
) -> None:
    """The layer has ten outputs of 64 inputs each, so that rank 16 saves no bytes."""
    overrides = (
        "codec=lowrank",
        "codec.mode=posthoc",
        f"codec.k={rank}",
        "codec.min_size=64",
        "model=logreg",
        "rounds=1",
    )
    run_training(tmp_path, *overrides)
    assert ("codec=lowrank does not make updates of this network smaller" in caplog.text) == has_notice


@pytest.mark.parametrize(("rate", "has_notice"), [("1e-5", True), ("0.003", True), ("0.0031", False)])
def test_a_gradient_of_two_components_gives_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rate: str, has_notice: bool
) -> None:
    """Of 650 numbers a share of .003 is the shortest sketch, two; .0031 are three."""
    run_training(tmp_path, "selector=hcsfed", f"selector.rate={rate}", "model=logreg", "rounds=1")
    assert ("selector=hcsfed compresses a gradient of this network into two numbers" in caplog.text) == has_notice


def test_a_component_of_any_group_may_add_notices() -> None:
    class AvailabilityWithNotices(type(make_component("availability", "always"))):  # type: ignore[misc]
        def notices(self, choice: str) -> list[str]:
            return [f"availability={choice} says this", "and that"]

    parts, composition = make_components(availability=AvailabilityWithNotices()), compose_overrides()
    notice_lines = list_notices({**composition.choices, "availability": "sometimes"}, Facts(parts, composition.config))
    assert notice_lines == ["availability=sometimes says this", "and that"]


@pytest.mark.parametrize(
    ("overrides", "lines"),
    [
        ((), []),
        (("rounds=5", "eval.every=5", "eval.clients_every=0"), []),
        (
            ("rounds=2", "eval.every=5"),
            ["eval.every=5 exceeds rounds=2: only the first model is evaluated, before any training"],
        ),
        (
            ("rounds=2", "eval.clients_every=3"),
            [
                "eval.clients_every=3 exceeds rounds=2: only the first model is evaluated on the clients, "
                "before any training"
            ],
        ),
        (
            ("rounds=2", "eval.every=5", "eval.clients_every=3"),
            [
                "eval.every=5 exceeds rounds=2: only the first model is evaluated, before any training",
                "eval.clients_every=3 exceeds rounds=2: only the first model is evaluated on the clients, "
                "before any training",
            ],
        ),
    ],
)
def test_evaluations_that_never_happen_give_a_notice(overrides: tuple[str, ...], lines: list[str]) -> None:
    assert list_evaluation_notices(compose_overrides(*overrides).config) == lines
