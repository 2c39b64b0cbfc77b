"""The guard around a run's parts: read-only arrays, checked results, named exceptions."""

from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_component
from fedcohort.agg.base import Aggregator, Arrived, Direction
from fedcohort.agg.fedavg import FedAvg
from fedcohort.availability.base import Availability
from fedcohort.availability.bernoulli import Bernoulli
from fedcohort.client.base import Client
from fedcohort.errors import ComponentError, UndeclaredSignal
from fedcohort.rng import Draws
from fedcohort.round.guard import (
    add_result_checks,
    find_faulty_component,
    map_modules_to_options,
    prefix_errors_with_component,
)
from fedcohort.types import Ids, RoundOutcome, Selection, Values

OUTCOME = RoundOutcome(0, Selection(np.arange(2)), np.arange(2), np.empty(0, np.int64), {}, {}, 1.0)


def guard_method(method: Any, name: str, **attributes: Any) -> Any:
    kind: Any = type("Mine", (FedAvg,), {name: method, **attributes, "__module__": __name__})
    return add_result_checks(kind(weighting="used"), "agg", "agg=mine", Aggregator)


def make_arrived() -> Arrived:
    return Arrived(OUTCOME, torch.ones(3, dtype=torch.float64), {}, np.full(2, 0.5), None)


def test_a_valid_result_is_returned_unchanged() -> None:
    agg = add_result_checks(FedAvg("used"), "agg", "agg=fedavg", Aggregator)
    mean = make_arrived()
    assert agg.direction(None, mean)[0].displacement is mean.mean


def test_an_invalid_result_names_option_class_method_and_value() -> None:
    agg = guard_method(lambda self, n_used, n_train: -n_used.astype(float), "weights")
    message = r"agg=mine \(.*test_guard.Mine\): weights: the result must be .* got float64 array \[2\]"
    with pytest.raises(ComponentError, match=message):
        agg.weights(np.array([3, 4]), np.array([3, 4]))


def test_an_exception_names_file_and_line() -> None:
    agg = guard_method(lambda self, state, received: 1 / 0, "direction")
    with pytest.raises(ComponentError, match=r"direction raised ZeroDivisionError.*test_guard.py, line \d+"):
        agg.direction(None, make_arrived())


def test_arrays_are_read_only_and_changed_tensors_are_an_error() -> None:
    def weights(self: object, n_used: Ids, n_train: Ids) -> Values:
        n_used[:] = 0
        return n_used.astype(float)

    def direction(self: object, state: None, arrived: Arrived) -> tuple[Direction, None]:
        return Direction(arrived.mean.mul_(2)), state

    agg, sizes = guard_method(weights, "weights", direction=direction), np.array([3, 4])
    with pytest.raises(ComponentError, match="read-only"):
        agg.weights(sizes, sizes)
    assert sizes.tolist() == [3, 4]
    sizes[:] = 1  # the run's own array stays as it was
    with pytest.raises(ComponentError, match="changes an argument tensor in place"):
        agg.direction(None, make_arrived())


def test_attributes_have_the_types_of_the_contract() -> None:
    with pytest.raises(ComponentError, match="needs must be frozenset, got 'loss'"):
        guard_method(None, "other", needs="loss")
    with pytest.raises(ComponentError, match="broadcast must be a method, got None"):
        guard_method(None, "broadcast")


@pytest.mark.parametrize("clip", [5, 5.0, None])
def test_a_whole_number_fits_an_optional_float(clip: float | None) -> None:
    """`client.clip=5` is typed without a point, and the contract says `float | None`."""
    assert add_result_checks(make_component("client", "sgd", clip=clip), "client", "client=sgd", Client).clip == clip


def test_a_method_without_arguments_is_named() -> None:
    part = add_result_checks(Bernoulli(0.5), "availability", "availability=bernoulli", Availability)
    assert part.ready(Draws(0, 5, 1)).dtype == bool
    with pytest.raises(ComponentError, match="weights raised TypeError"):
        guard_method(lambda self: None, "weights").weights(np.ones(1), np.ones(1))


def test_unguarded_code_is_identified_by_its_module() -> None:
    class Layer(torch.nn.Module):
        pass

    owners = map_modules_to_options(
        {"model=mine": [torch.nn.Linear(1, 1), Layer()], "agg=mine": [Layer()]}, ["loss", "own.word"]
    )
    assert owners[__name__] == "model=mine or agg=mine"
    assert owners["own.word"] == "the signal own.word"
    assert not any(module.startswith("torch") for module in owners)
    with pytest.raises(ValueError, match="ten") as caught:
        raise ValueError("ten")
    assert "model=mine or agg=mine raised ValueError: ten" in str(find_faulty_component(caught.value, owners))
    assert find_faulty_component(caught.value, {}) is None
    assert find_faulty_component(ComponentError("named already"), owners) is None


def test_errors_of_the_engine_name_the_component() -> None:
    agg = guard_method(None, "other")
    with (
        pytest.raises(UndeclaredSignal, match=r"agg=mine \(.*\): the selector reads"),
        prefix_errors_with_component(agg),
    ):
        raise UndeclaredSignal("the selector reads the signal 'loss'")
