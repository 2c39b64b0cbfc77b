"""What can't work together is refused at start-up, by name, before a folder is made."""

from pathlib import Path

import pytest
import torch
from torch import nn

from config_options import list_options, make_component
from engine_harness import make_federation
from fedcohort.component import Facts
from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.flat import Layout, has_batch_statistics
from fedcohort.startup import requirements
from round_harness import run_without_files
from run_harness import compose_overrides, make_components, run_training, startup_notices
from selector_harness import World, play_rounds


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("selector=flash", "device=instant"), "selector=flash reads how long clients take, but device=instant"),
        (
            ("agg=scaffold", "agg.control=displacement", "client=adam"),
            "without momentum, weight_decay and clip and regulariser=none, or agg.control=mean_gradient",
        ),
        (("agg=scaffold", "agg.control=displacement", "client.momentum=0.9"), "holds only for plain SGD"),
        (("agg=scaffold", "agg.control=displacement", "regulariser=prox"), "holds only for plain SGD on the loss"),
        (("dataset=synthetic", "model=cnn"), "model=cnn needs images"),
        (
            ("selector=feddiverse", "selector.source=known_dht"),
            "selector=feddiverse reads the numbers of samples per class and attribute, but dataset=digits "
            "has no attributes: choose dataset=cmnist, or selector.source=estimated$",
        ),
        (("agg=scaffold", "codec=mask"), "agg=scaffold compares or corrects clients in all parameters, but the codec"),
        (("agg=fedmgda_plus", "codec=mask"), "choose a codec that works on finished updates"),
        (("agg=fedbio", "agg.variant=second_order", "codec=lowrank"), "or codec.mode=posthoc for codec=lowrank"),
        (("codec=lowrank", "client=adam"), "linear in the gradients: choose client=sgd, or codec.mode=posthoc"),
        (("codec=lowrank", "client.weight_decay=0.1"), "client.weight_decay changes every parameter"),
        (("codec=mask", "client.weight_decay=0.1"), "client.weight_decay changes every parameter"),
        (
            ("selector=pyramidfl", "codec=lowrank"),
            "selector=pyramidfl leaves tensors out of finished updates, and codec=lowrank changes local training: "
            "choose codec=none, codec=subsample or codec=quant, or set codec.mode=posthoc",
        ),
        (("selector=pyramidfl", "codec=mask"), "codec=mask changes local training: choose codec=none"),
        (
            ("agg=fedsgd", "selector=pyramidfl"),
            "selector=pyramidfl gives fast clients more local work, and agg=fedsgd needs the same number of steps at "
            "every client: choose another aggregator, or set selector.beta=0",
        ),
        (("agg=fedsgd", "client.steps=2"), "agg=fedsgd stands for client.steps=1, but client.steps=2 was requested"),
        *(
            (
                (f"agg={agg}", "selector=feel", "selector.agg=unbiased", "proxy=noise"),
                f"agg={agg} normalises the weights of clients, .* selector=feel sets must keep their sum",
            )
            for agg in ("afl", "ccr", "feddf", "fedmaba", "fedmgda_plus", "qffl", "rhfl", "term")
        ),
        (("agg=feddf",), "with proxy=none the server has no inputs"),
        (("agg=rhfl",), "with proxy=none the server has no inputs"),
        (
            ("agg=fedbio", "split.client_val=0"),
            r"agg=fedbio learns from the clients' validation sets, but .* choose split.client_val in \(0, 0.5\]",
        ),
        (
            ("agg=fedbio", "objective=propfair"),
            "agg=fedbio changes a sample's weight by the gradient of its loss, but with objective=",
        ),
        (("agg=fedbio", "objective=flash_robust"), "agg=fedbio weighs noisy labels, but objective=f"),
        (
            ("agg=fedbio", "objective=propfair", "objective@objective.base=flash_robust", "objective.M=17"),
            "agg=fedbio changes a sample.s weight by the gradient of its loss",
        ),
        (("agg=qffl", "client=adam"), "choose client=sgd, or set agg.lipschitz"),
        (("agg=qffl", "agg.q=-1"), r"agg.q must be a number in \[0, inf\), got -1"),
        (("agg=fedmaba", "agg.rho=-1"), r"agg.rho must be a number in \[0, inf\), got -1"),
        (("agg=fedmaba", "agg.alpha=2"), r"agg.alpha must be a number in \[0, 1\], got 2"),
        (("agg=fedmaba", "agg.eta=0"), r"agg.eta must be a number in \(0, 1e30\], got 0"),
        (("objective=propfair", "objective.M=0.1"), "objective.M must be at least epsilon = 0.2, got 0.1"),
        (
            ("agg=propfair", "objective@objective.base=flash_robust"),
            "objective.M must be above 16, the largest value of the bounded terms of objective.base, got 5",
        ),
        (("objective=propfair", "objective@objective.base=sce"), "objective.M must be above 9.21"),
        *(
            (
                (*list_options, f"deadline={deadline}"),
                f"uses the deadline that is announced to clients, .* deadline={deadline}",
            )
            for list_options in (("samples=fedbalancer",), ("samples=oort_balancer", "client.steps=5"))
            for deadline in ("wait_for_all", "smartpc_quorum", "over_commit")
        ),
        (
            ("samples=fedbalancer", "deadline=fixed", "client.steps=5"),
            "samples=fedbalancer shortens a round by training on fewer samples, but client.steps",
        ),
        (("samples=oort_balancer", "deadline=fixed"), "samples=oort_balancer .* choose client.steps=5"),
        (
            ("samples=oort_balancer", "deadline=fixed", "agg=fedsgd"),
            "samples=oort_balancer draws the samples of mini-batches, but client.batch=null makes one batch",
        ),
        (("samples=fedbalancer", "deadline=fixed", "device=instant"), "samples=fedbalancer reads how long"),
        (("deadline=fedbalancer", "device=instant"), "deadline=fedbalancer reads how long clients take"),
        (("deadline=fedbalancer", "client.steps=5"), "deadline=fedbalancer shortens a round"),
        (
            ("deadline=fedbalancer", "deadline.grid=0"),
            r"deadline.grid must be a number in \[1e-9, 1e12\] or null, got 0",
        ),
        (("clients=3000", "cohort=4"), "clients"),
        (("partition=natural",), "client column"),
        (("dataset=folder", "dataset.path=/nowhere/at/all"), "/nowhere/at/all"),
        (("name=../../evil",), "name must be letters, digits"),
        (("name=a/b",), "name must be letters, digits"),
        (("+foo=1",), "there is no option 'foo'; there are"),
        (("~selector",), "selector must be one of the choices in configs/selector, got nothing"),
        (("logger=mlflow", "logger.experiment="), "logger.experiment must be a text"),
        (("callback=default", "callback.progress.lines_every=0"), "callback.progress.lines_every must be"),
        (("trainer.num_nodes=2",), "trainer.num_nodes must be 1 where neither SLURM nor torchrun"),
        pytest.param(
            ("trainer=gpu",),
            "trainer.devices must be at most the number of CUDA devices",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device"),
        ),
    ],
)
def test_incompatible_options_are_rejected(tmp_path: Path, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(FedcohortError, match=message):
        run_training(tmp_path, *overrides)
    assert not list(tmp_path.iterdir()), "no half-written run"


def test_a_cohort_larger_than_the_natural_population_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"cohort=40 exceeds clients=30: lower cohort"):
        run_training(tmp_path, "dataset=synthetic", "clients=30", "cohort=40")


@pytest.mark.parametrize(
    "overrides",
    [
        ("agg=scaffold", "agg.control=displacement"),
        ("agg=scaffold", "agg.control=displacement", "regulariser=prox", "regulariser.mu=0"),
        ("agg=scaffold", "regulariser=prox"),
        ("agg=fedbio", "objective=sce"),
        ("selector=ucb_cs", "device=instant"),
        ("agg=scaffold", "codec=lowrank", "codec.mode=posthoc", "codec.k=2", "codec.min_size=1"),
        ("codec=mask", "client=adam"),
        ("selector=fedpns", "codec=lowrank", "codec.k=2", "codec.min_size=1"),
        ("selector=pyramidfl", "codec=lowrank", "codec.mode=posthoc", "codec.k=2", "codec.min_size=1"),
        ("selector=pyramidfl", "selector.low=0", "selector.high=0", "codec=mask"),
        ("agg=fedsgd", "selector=pyramidfl", "selector.beta=0"),
        ("agg=qffl", "objective=propfair"),
        ("objective=propfair", "objective@objective.base=flash_robust", "objective.M=40"),
        ("samples=oort_balancer", "deadline=fixed", "client.steps=3", "selector=oort"),
        (
            *("samples=fedss_loss", "agg=scaffold", "selector=feddiverse"),
            *("selector.pretrain=1", "selector.epochs=1", "selector.batch=100"),
        ),
        ("samples=random", "deadline=fedbalancer", "objective=flash_robust"),
    ],
)
def test_compatible_options_run(overrides: tuple[str, ...]) -> None:
    assert run_without_files(*overrides, "rounds=2").last.step == 2


GROUPS = ("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device")


def test_every_requirement_can_fail_and_every_fact_exists() -> None:
    choices = {group: group for group in compose_overrides().choices}
    components = [make_component(group, choice) for group in GROUPS for choice in list_options(group)]
    all_requirements = {item for part in components for item in (*part.requirements, *part.recommendations)}
    assert len(all_requirements) > 12
    parts, network = make_components(), nn.Linear(2, 2)
    facts = Facts(
        parts,
        compose_overrides().config,
        make_federation(),
        3,
        Layout.from_network(network),
        has_batch_statistics(network),
    )
    for requirement in all_requirements:
        message = requirements.format_requirement(requirement, "selector=flash", choices, facts)
        assert "selector=flash" in message
        assert "{" not in message
        assert bool(requirement.holds(facts)) == requirement.holds(facts)


IGNORED = "selector=hcsfed sets have no effect"
STRATIFIED = ("selector=hcsfed", "selector.agg=stratified")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((*STRATIFIED, "agg=fedmaba"), True),
        ((*STRATIFIED, "agg=fedmaba", "agg.alpha=0"), False),
        ((*STRATIFIED, "agg=feddf", "proxy=noise"), True),
        ((*STRATIFIED, "agg=feddf", "proxy=noise", "agg.steps=0"), False),
        ((*STRATIFIED, "agg=ccr"), False),
        (("selector=hcsfed", "agg=fedmaba"), False),
        (("selector=fedpns", "agg=fedmaba"), False),
    ],
)
def test_ignored_advised_weights_give_a_notice(overrides: tuple[str, ...], expected: bool) -> None:
    """FedPNS excludes updates and advises no weights, which every aggregator supports."""
    lines = [line for line in startup_notices(*overrides) if "sets have no effect" in line]
    assert len(lines) == expected
    assert all(IGNORED in line for line in lines)


def test_a_requirement_of_another_type_is_rejected() -> None:
    class InvalidRequirement(type(make_component("selector", "random"))):  # type: ignore[misc]
        requirements = frozenset({"a_moon"})

    parts, choices = (
        make_components(selector=InvalidRequirement("uniform")),
        {**compose_overrides().choices, "selector": "odd"},
    )
    with pytest.raises(IncompatibleConfig, match="odd declares 'a_moon' as a requirement or recomm"):
        requirements.check_requirements(choices, Facts(parts, {}))


def test_components_describe_themselves_correctly() -> None:
    for choice in list_options("selector"):
        last = play_rounds(make_component("selector", choice), World(), 3)[-1].selection
        assert last.uncapped == make_component("selector", choice).uncapped, choice
    g = torch.tensor([3.0, -1.0], dtype=torch.float64)
    for choice in list_options("server"):
        server = make_component("server", choice)
        second_step = server.step(server.step(server.init(2), g)[1], g)[0]
        assert torch.equal(second_step, server.lr * g) == server.plain, choice
    logits, means = torch.eye(3, dtype=torch.float64), torch.linspace(0.1, 2, 5)
    for choice in list_options("objective"):
        objective = make_component("objective", choice)
        loss, cross_entropy = objective.per_sample(
            logits, torch.tensor([0, 1, 1]), torch.full((3, 3), 1 / 3, dtype=torch.float64)
        )
        averages = torch.equal(objective.transform_mean(means), means)
        assert averages == objective.minimises_mean, choice
        assert (torch.equal(loss, cross_entropy) and averages) == objective.plain, choice
