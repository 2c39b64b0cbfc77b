"""Under secure aggregation, signals that reveal the update or gradient of one client are rejected."""

from typing import Any

import numpy as np
import pytest
from torch import Tensor

from agg_harness import make_update
from config_options import make_component
from engine_harness import make_federation, make_network, make_trainer
from failure_hints import failure_hint
from fedcohort.command.methods import reads_single_updates
from fedcohort.flat import FlatModel
from fedcohort.maths.sketch import SKETCH_KINDS
from fedcohort.signal.base import Computed, Reported, find_signal, list_signals
from fedcohort.training.evaluate import SignalMeasurer
from fedcohort.types import ClientUpdate

SIGNALS = {name: find_signal(name) for name in list_signals()}
QUERY = {"batch": 5, "key": 0, "trainers": [0], "rate": 1.0, "way": SKETCH_KINDS[0], "cohort": 1, "direction": "down"}
OPTIONS: dict[str, Any] = {**QUERY, "q": 1.0, "epochs": 1, "lr": 0.1, "seed": 0}  # of all queries together
MAX_NUMBERS = 12  # largest answer that is not a gradient; the network has 650 parameters


class Hidden(Exception):
    """Raised where a single update is read."""


def hidden_update() -> ClientUpdate:
    """Return an update whose vector the server cannot see."""

    def vector() -> Tensor:
        raise Hidden

    plain = make_update(0, [0.0])
    return type(plain)(**{**vars(plain), "vector": vector})


@pytest.mark.parametrize("name", [name for name, signal in SIGNALS.items() if isinstance(signal, Reported)])
@failure_hint("Set `is_gradient=True` in a Reported signal exactly if `read` reads the update's vector.")
def test_reports_that_read_the_update_are_marked(name: str) -> None:
    signal = SIGNALS[name]
    assert isinstance(signal, Reported)
    try:
        signal.read(hidden_update())
        reads_update = False
    except Hidden:
        reads_update = True
    except (KeyError, ValueError):  # a report of a list of losses, which this client does not keep
        reads_update = False
    assert signal.is_gradient == reads_update


@pytest.fixture(scope="module")
def lab() -> SignalMeasurer:
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, epochs=1, batch=10)
    return SignalMeasurer(trainer.server, FlatModel(make_network()), federation, trainer.train_whole_job)


@pytest.mark.parametrize("name", [name for name, signal in SIGNALS.items() if isinstance(signal, Computed)])
@failure_hint(
    "Set `is_gradient=True` in a Computed signal whose answer is as long as the model, or a part of a gradient."
)
def test_answers_as_long_as_a_gradient_are_marked(name: str, lab: SignalMeasurer) -> None:
    signal = SIGNALS[name]
    assert isinstance(signal, Computed)
    try:
        answers = signal.compute(lab, 0, np.arange(2), OPTIONS)
    except KeyError:  # a new signal with other options
        return
    assert signal.is_gradient == (answers.size > 2 * MAX_NUMBERS)


def test_methods_that_read_single_updates_do_not_work_under_secure_aggregation() -> None:
    def fails(*choices: str) -> list[str]:
        return [choice for choice in choices if reads_single_updates(make_component("selector", choice).needs)]

    reading = ("delta", "divfl", "fedpns", "gpfl", "greedyfed", "hcsfed", "hics_fl", "pyramidfl")
    assert fails("active_fl", "clustered", "e3cs", "feddiverse", "feel", "flash", "ocs", "powd", "random", "tifl") == []
    assert fails(*reading) == list(reading)
