"""What can't work together is refused at start-up, by name, before a folder is made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine_toy import federation_of
from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.flat import keeps_statistics
from fedcohort.round.parts import Parts
from fedcohort.startup import assemble, compatible, run
from run_harness import compose_words, go, remarks
from selector_harness import World, play
from yaml_words import make, words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("selector=flash", "device=instant"), "selector=flash reads how long clients take, but device=instant"),
        (
            ("agg=scaffold", "agg.control=displacement", "client=adam"),
            "choose client=sgd without momentum, weight_decay and clip, or agg.control=mean_gradient",
        ),
        (("agg=scaffold", "agg.control=displacement", "client.momentum=0.9"), "only holds for plain SGD"),
        (("dataset=synthetic", "model=cnn"), "model=cnn needs images"),
        (
            ("selector=feddiverse", "selector.source=known_dht"),
            "selector=feddiverse reads how many samples of each class and attribute clients have, but dataset=digits "
            "knows no attributes: choose dataset=cmnist, or selector.source=estimated$",
        ),
        (
            ("agg=scaffold", "codec=mask"),
            "agg=scaffold compares or corrects clients in all parameters, but the codec",
        ),
        (("agg=fedmgda_plus", "codec=mask"), "choose a codec that works on finished updates"),
        (("agg=fedbio", "agg.variant=second_order", "codec=lowrank"), "or codec.mode=posthoc for codec=lowrank"),
        (("codec=lowrank", "client=adam"), "steps are linear in them: choose client=sgd, or codec.mode=posthoc"),
        (("codec=lowrank", "client.weight_decay=0.1"), "client.weight_decay moves every parameter"),
        (("codec=mask", "client.weight_decay=0.1"), "client.weight_decay moves every parameter"),
        (
            ("selector=pyramidfl", "codec=lowrank"),
            "selector=pyramidfl leaves tensors out of updates, and the codec trains each client for its own upload: "
            "choose codec=none, or .* codec.mode=posthoc",
        ),
        (("selector=pyramidfl", "codec=mask"), "choose codec=none, or a codec that works on finished updates"),
        (
            ("agg=fedsgd", "selector=pyramidfl"),
            "selector=pyramidfl asks some clients for several times the local work, and agg=fedsgd stands for a number "
            "of steps that is everybody's: choose another aggregator, or selector.beta=0",
        ),
        (("agg=fedsgd", "client.steps=2"), "agg=fedsgd stands for client.steps=1, but client.steps=2 was asked for"),
        *(
            (
                (f"agg={agg}", "selector=feel", "selector.agg=unbiased", "proxy=noise"),
                f"agg={agg} works out weights of its own, .* selector=feel advises weights whose very sum counts",
            )
            for agg in ("afl", "ccr", "feddf", "fedmaba", "fedmgda_plus", "qffl", "rhfl", "term")
        ),
        (("agg=feddf",), r"it holds none \(proxy=none\)"),
        (("agg=rhfl",), r"it holds none \(proxy=none\)"),
        (
            ("agg=fedbio", "split.client_val=0"),
            r"agg=fedbio learns from each client's V_k, and .* choose split.client_val in \(0, 0.5\]",
        ),
        (("agg=fedbio", "objective=flash_robust"), "agg=fedbio learns which labels to trust, and so does the objec"),
        (("agg=fedbio", "objective=propfair", "objective@objective.base=flash_robust", "objective.M=17"), "labels to"),
        (("agg=qffl", "client=adam"), "choose client=sgd, or set agg.lipschitz"),
        (("agg=qffl", "agg.q=-1"), r"agg.q must be a number in \[0, inf\), got -1"),
        (("agg=fedmaba", "agg.rho=-1"), r"agg.rho must be a number in \[0, inf\), got -1"),
        (("agg=fedmaba", "agg.alpha=2"), r"agg.alpha must be a number in \[0, 1\], got 2"),
        (("agg=fedmaba", "agg.eta=0"), r"agg.eta must be a number in \(0, inf\), got 0"),
        (("objective=propfair", "objective.M=0.1"), "objective.M must be at least epsilon = 0.2, got 0.1"),
        (
            ("agg=propfair", "objective@objective.base=flash_robust"),
            "objective.M must be above 16, what the bounded terms of objective.base can reach, got 5",
        ),
        (("objective=propfair", "objective@objective.base=sce"), "objective.M must be above 9.21"),
        *(
            ((*words, f"deadline={deadline}"), f"goes by the deadline that clients are told, .* deadline={deadline}")
            for words in (("samples=fedbalancer",), ("samples=oort_balancer", "client.steps=5"))
            for deadline in ("wait_for_all", "smartpc_quorum", "over_commit")
        ),
        (
            ("samples=fedbalancer", "deadline=fixed", "client.steps=5"),
            "samples=fedbalancer shortens a round by training on fewer samples, but client.steps",
        ),
        (("samples=oort_balancer", "deadline=fixed"), "samples=oort_balancer .* choose client.steps=5"),
        (
            ("samples=oort_balancer", "deadline=fixed", "agg=fedsgd"),
            "samples=oort_balancer draws the samples of mini-batches, and client.batch=null takes all",
        ),
        (
            ("samples=fedbalancer", "deadline=fixed", "device=instant"),
            "samples=fedbalancer reads how long",
        ),
        (("deadline=fedbalancer", "device=instant"), "deadline=fedbalancer reads how long clients take"),
        (("deadline=fedbalancer", "client.steps=5"), "deadline=fedbalancer shortens a round"),
        (("deadline=fedbalancer", "deadline.grid=0"), r"deadline.grid must be a number in \(0, inf\) or null, got 0"),
        (("clients=3000", "cohort=4"), "clients"),
        (("partition=natural",), "client column"),
        (("dataset=folder", "dataset.path=/nowhere/at/all"), "/nowhere/at/all"),
        (("name=../../evil",), "name must be letters, digits"),
        (("name=a/b",), "name must be letters, digits"),
        (("+foo=1",), "there is no option 'foo'; there are"),
        (("~selector",), "selector must be one of the words in configs/selector, got nothing"),
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
def test_it_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(FedcohortError, match=message):
        go(tmp_path, *words)
    assert not list(tmp_path.iterdir()), "no half-written run"


def test_a_cohort_larger_than_the_natural_population(tmp_path: Path) -> None:
    with pytest.raises(IncompatibleConfig, match=r"cohort=40 exceeds clients=30"):
        go(tmp_path, "dataset=synthetic", "clients=30", "cohort=40")


@pytest.mark.parametrize(
    "words",
    [
        ("agg=scaffold", "agg.control=displacement"),
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
        ("samples=fedss_loss", "selector=feddiverse", "selector.pretrain=1", "agg=scaffold"),
        ("samples=random", "deadline=fedbalancer", "objective=flash_robust"),
    ],
)
def test_what_can_work_runs(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert go(tmp_path, *words, "rounds=2").last.step == 2


CLEAN = "heterogeneity=noniid30"
LISTS = ("samples=fedbalancer", "deadline=fixed")
PACED = ("samples=fedbalancer", "deadline=fedbalancer")
NOISY = "high losses draw {} to clients, and wrong labels (label_noise=beta) make losses high, too"
OFTEN = "changes the weights of those who arrive alone, and so leans towards clients that train often"
AWAY = "agg=rhfl compares a client's loss with that of when it last came: who stays away longer seems to learn faster"
RHFL = ("agg=rhfl", "proxy=noise")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("selector=flash", "agg=scaffold"), []),
        (("agg=fedmaba", "selector=flash", CLEAN), []),
        # wrong labels have high losses
        (("selector=powd",), [NOISY.format("selector=powd")]),
        (("selector=powd", CLEAN), []),
        (("selector=powd", "label_noise=none"), []),
        (("selector=oort", "agg=term"), [NOISY.format("selector=oort and agg=term")]),
        (("agg=term", "agg.tilt=-1"), []),
        (("agg=qffl", "agg.q=0"), []),
        (("agg=propfair",), [NOISY.format("objective=propfair")]),
        ((*LISTS,), ["high losses draw samples=fedbalancer to samples, and wrong labels"]),
        ((*LISTS, CLEAN), []),
        ((*LISTS, "samples.w=5", CLEAN), []),
        ((*PACED, CLEAN), []),
        ((*PACED, "samples.w=5", "deadline.w=5", CLEAN), []),
        (
            (*PACED, "samples.w=5", CLEAN),
            ["deadline=fedbalancer has one controller with samples=fedbalancer in the paper, and samples.w isn't"],
        ),
        (("deadline=fedbalancer", "deadline.w=5", CLEAN), []),
        (
            ("deadline=fedbalancer", "deadline.grid=1", CLEAN),
            ["deadline=fedbalancer goes by seconds of a clock, and those of device=shifted_exponential are multiples"],
        ),
        (("deadline=fedbalancer", "deadline.grid=1", "device=phones", CLEAN), []),
        ((*LISTS, "samples.noise=0.5", CLEAN), ["samples.noise=0.5 leaves the threshold of samples=fedbalancer lower"]),
        # weights that only those who arrive move
        (("agg=afl", CLEAN), [f"agg=afl {OFTEN}"]),
        (("agg=afl", "agg.gamma=0", CLEAN), []),
        (("agg=afl", "agg.unbiased=true", CLEAN), []),
        (("agg=fedsgd", "client.epochs=3"), ["client.epochs=3 has no effect: client.steps=1 is what clients do"]),
        (("client.epochs=2", "client.steps=3"), ["client.epochs=2 has no effect: client.steps=3 is what clients do"]),
        (
            ("selector=oracle_clean",),
            ["selector=oracle_clean is a yardstick, no method: it reads noise_rate, which no"],
        ),
        (("agg=afl", "cohort=50", CLEAN), []),
        (("agg=afl", "selector=full", CLEAN), []),
        (("agg=afl", "cohort=50", "availability=bernoulli", CLEAN), [f"agg=afl {OFTEN}"]),
        (("agg=afl", "cohort=50", "deadline=fixed", CLEAN), [f"agg=afl {OFTEN}"]),
        (("agg=fedmaba", "agg.sync=literal", CLEAN), [f"agg=fedmaba {OFTEN}"]),
        (("agg=fedmaba", "agg.sync=literal", "agg.alpha=0", CLEAN), []),
        (
            ("selector=fedpns", "cohort=4"),
            ["selector=fedpns keeps ceil(keep x cohort) of a cohort, which is all of it"],
        ),
        (("selector=fedpns", "cohort=5"), []),
        (("selector=hcsfed", "cohort=3"), []),
        (("selector=hcsfed", "cohort=3", "selector.strata=3"), []),
        (
            ("selector=hcsfed", "cohort=3", "selector.strata=4"),
            ["selector=hcsfed has more strata than a cohort has places"],
        ),
        (("selector=fedpns", "cohort=4", "selector.keep=0.75"), []),
        (("availability=diurnal",), []),
        (
            ("availability=diurnal", "device=instant"),
            ["availability=diurnal follows the virtual clock, which work with device=instant doesn't move"],
        ),
        (RHFL, [AWAY]),
        ((*RHFL, "cohort=50"), []),
        ((*RHFL, "agg.beta=0"), []),
    ],
)
def test_it_says_what_is_lost(words: tuple[str, ...], lines: list[str]) -> None:
    found = remarks(*words)
    assert len(found) == len(lines)
    assert all(line in said for line, said in zip(lines, found, strict=True))


def parts_of(*overrides: str, **others: Any) -> Parts:
    config = compose_words(*overrides)
    objects = {group: assemble.part(config, group) for group in (*assemble.LIGHT, *assemble.HEAVY)}
    return replace(run._parts(config, objects), **others)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(4), nn.SyncBatchNorm(4), nn.GroupNorm(2, 4)])
def test_batch_norm_is_averaged_by_samples_whatever_else_is(norm: nn.Module) -> None:
    parts, federation = parts_of("dataset=synthetic"), federation_of()
    for word in ("scaffold", "fedmgda_plus", "fednova", "qffl", "fedavg", "afl"):
        fair = replace(parts, agg=make("agg", word))
        known = compatible.with_data(compatible.facts(fair, 0.1, {}), fair, federation.n_clients, federation)
        known = replace(known, batch_norm=keeps_statistics(nn.Sequential(nn.Linear(2, 4), norm)))
        found = compatible.remarks(fair, {**compose_words("dataset=synthetic").choices, "agg": word}, {}, known)
        assert len(found) == (word not in ("fedavg", "afl") and not isinstance(norm, nn.GroupNorm))
        assert all("the network has batch norm" in line and f"whatever agg={word} makes" in line for line in found)


GROUPS = ("selector", "agg", "codec", "objective", "availability", "samples", "deadline", "device")


@pytest.mark.parametrize(("rank", "said"), [(16, True), (4, False)])
def test_a_codec_that_leaves_every_tensor_whole_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rank: int, said: bool
) -> None:
    """Ten outputs of 64 inputs each: of rank 16 nothing is to be had."""
    words = ("codec=lowrank", "codec.mode=posthoc", f"codec.k={rank}", "codec.min_size=64", "model=logreg", "rounds=1")
    go(tmp_path, *words)
    assert ("codec=lowrank makes no update of this network smaller" in caplog.text) == said


def test_every_sentence_can_be_said_and_every_fact_is_known() -> None:
    choices = {group: group for group in compose_words().choices}
    parts = [make(group, word) for group in GROUPS for word in words(group)]
    wants = {want for part in parts for want in (*part.wants, *part.prefers)}
    assert len(wants) > 12
    known = compatible.with_data(compatible.facts(parts_of(), 0.1, {}), parts_of(), 3, federation_of())
    for want in wants:
        said = want.sentence.format(**choices, who="somebody")
        assert "somebody" in said
        assert "{" not in said
        assert want.holds(replace(known, batch_norm=True, smaller_update=True)) in (True, False)


def test_what_is_no_want_is_refused() -> None:
    class Odd(type(make("selector", "random"))):  # type: ignore[misc]
        wants = frozenset({"a_moon"})

    parts, choices = parts_of(selector=Odd("uniform")), {**compose_words().choices, "selector": "odd"}
    with pytest.raises(IncompatibleConfig, match=r"^odd wants or prefers 'a_moon', which is no Want"):
        compatible.check(parts, choices, compatible.facts(parts, 0.1, {}))


def test_what_parts_say_of_themselves_is_so() -> None:
    for word in words("selector"):
        last = play(make("selector", word), World(), 3)[-1].selection
        assert last.uncapped == make("selector", word).uncapped, word
    g = torch.tensor([3.0, -1.0], dtype=torch.float64)
    for word in words("server"):
        server = make("server", word)
        twice = server.step(server.step(server.init(2), g)[1], g)[0]
        assert torch.equal(twice, server.lr * g) == server.plain, word
    logits, means = torch.eye(3, dtype=torch.float64), torch.linspace(0.1, 2, 5)
    for word in words("objective"):
        objective = make("objective", word)
        loss, ce = objective.per_sample(logits, torch.tensor([0, 1, 1]), torch.full((3, 3), 1 / 3, dtype=torch.float64))
        simple = torch.equal(loss, ce) and torch.equal(objective.outer(means), means)
        assert simple == objective.plain, word


def test_a_part_of_any_group_may_remark_on_its_options() -> None:
    class Talker(type(make("availability", "always"))):  # type: ignore[misc]
        def remarks(self, word: str) -> list[str]:
            return [f"availability={word} says this", "and that"]

    parts, choices = parts_of(availability=Talker()), compose_words().choices
    found = compatible.remarks(parts, {**choices, "availability": "sometimes"}, {}, compatible.facts(parts, 0.1, {}))
    assert found == ["availability=sometimes says this", "and that"]
