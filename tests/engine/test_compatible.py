"""What can't work together is refused at start-up, by name, before a folder is made."""

from pathlib import Path

import pytest
import torch

from fedcohort.errors import FedcohortError, IncompatibleConfig
from run_harness import go


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("selector=flash", "device=instant"), "the selector reads how long clients take, but device=instant"),
        (
            ("agg=scaffold", "agg.control=displacement", "client=adam"),
            "choose agg.control=mean_gradient, or client=sgd",
        ),
        (("agg=scaffold", "agg.control=displacement", "client.momentum=0.9"), "only holds for plain SGD"),
        (("dataset=synthetic", "model=cnn"), "model=cnn needs images"),
        (
            ("selector=feddiverse", "selector.source=known_dht"),
            "the selector reads how many samples of each class and attribute clients have, but dataset=digits knows no "
            "attributes: choose dataset=cmnist, or selector.source=estimated",
        ),
        (
            ("agg=scaffold", "codec=mask"),
            "the aggregator compares or corrects clients in all parameters, but the codec",
        ),
        (("agg=fedmgda_plus", "codec=mask"), "choose a codec that works on finished updates"),
        (("agg=fedbio", "agg.variant=second_order", "codec=lowrank"), "or codec.mode=posthoc for codec=lowrank"),
        (("codec=lowrank", "client=adam"), "steps are linear in them: choose client=sgd, or codec.mode=posthoc"),
        (("codec=lowrank", "client.weight_decay=0.1"), "client.weight_decay moves every parameter"),
        (("codec=mask", "client.weight_decay=0.1"), "client.weight_decay moves every parameter"),
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
    ],
)
def test_what_can_work_runs(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert go(tmp_path, *words, "rounds=2").last.step == 2
