"""The choices and options of a config that differ from the defaults in configs/."""

import pytest

from fedcohort.startup.run_info import list_changed
from run_harness import compose_words

STOPPING = "lightning.pytorch.callbacks.EarlyStopping"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ((), {}),
        (("seed=3", "callback=none", "logger=none"), {"seed": "3"}),  # who watches is no part of the experiment
        (("client.lr=0.2", "cohort=10"), {"client.lr": "0.2"}),  # cohort is 10 anyway
        (("clients=20",), {"clients": "20"}),  # the yaml computes it
        (("selector=flash", "selector.delta=0.1"), {"selector": "flash", "selector.delta": "0.1"}),
        (("heterogeneity=iid",), {"heterogeneity": "iid"}),  # and not the words that it stands for
        (("partition=iid",), {"partition": "iid"}),  # the preset is none any more, its other words are as before
        (("agg=fedprox",), {"agg": "fedprox", "regulariser": "prox", "deadline.partial_work": "true"}),
        (
            ("experiment=regret",),
            {"experiment": "regret", "clients": "20", "cohort": "4", "rounds": "20", "client.epochs": "1"},
        ),
        (("dataset=mnist", "dataset.columns={image: a}"), {"dataset": "mnist", "dataset.columns.image": "a"}),
        (("objective=propfair",), {"objective": "propfair"}),
        (
            ("objective=propfair", "objective@objective.base=gce"),
            {"objective": "propfair", "objective.base": "gce"},
        ),
        (("data_seed=null", "until.acc=0.5"), {"until.acc": "0.5"}),
        (  # it may end the run, and an observer may not
            (
                f"+callback.halt._target_={STOPPING}",
                "+callback.halt.monitor=server_val/loss",
                "callback.summary.full=true",
            ),
            {"callback.halt._target_": STOPPING, "callback.halt.monitor": "server_val/loss"},
        ),
    ],
)
def test_differences_from_the_defaults_are_listed(typed: tuple[str, ...], expected: dict[str, str]) -> None:
    assert list_changed(compose_words(*typed)) == expected
