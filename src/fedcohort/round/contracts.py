"""Checks of the results of components' methods in every round: `CHECKS_BY_GROUP` names one for each group and method.

A check gets the component, the result and the arguments of the call. It returns the result that the round uses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcohort.availability.schedule import ReadySchedule
from fedcohort.contracts import (
    check_array,
    check_ids,
    check_integer,
    check_number,
    check_numbers_by_name,
    check_result_and_state,
    check_state_type,
    check_tensor,
    check_type,
    check_vectors_by_name,
    contract_error,
)
from fedcohort.device.base import Timing, Workload
from fedcohort.errors import ComponentError
from fedcohort.rng import Draws
from fedcohort.round.data_contracts import ATTACK_CHECKS, DATA_CHECKS, check_changed_update
from fedcohort.types import AggregationOverride, Ids, Probe, RoundContext, RoundOutcome, Selection

AnyComponent = Any  # a component of the check's group
Result = Any
State = Any
ResultCheck = Callable[..., Result]
MAX_PROB_SUM = 1 + 1e-9  # upper bound of probabilities that are sums


def check_init(component: AnyComponent, state: State, *args: object) -> State:
    """Return a component's initial state; raise `ComponentError` if `state` cannot be saved in a checkpoint."""
    from fedcohort.state import pack_state  # noqa: PLC0415 - options are checked before torch is imported

    try:
        pack_state(state)
    except TypeError as error:
        raise ComponentError(f"the state can't be saved in a checkpoint: {error}") from error
    return state


def check_next_state(component: AnyComponent, result: Result, state: State, *args: object) -> State:
    return check_state_type(result, state)


def check_metrics(component: AnyComponent, result: Result, *args: object) -> Result:
    check_numbers_by_name("the result", result)
    return result


# --- selector ------------------------------------------------------------------------------------------------------
def check_probes(component: AnyComponent, result: Result, state: State, ctx: RoundContext) -> Sequence[Probe]:
    """Return the selector's queries (`Probe`) in `result` as a tuple; raise `ComponentError` for an invalid one."""
    probes = tuple(result)
    for probe in probes:
        check_type("a probe", probe, Probe)
        check_type("Probe.signal", probe.signal, str)
        check_ids("Probe.clients", probe.clients, ctx.n_clients)
        check_type("Probe.options", probe.options, Mapping)  # type: ignore[type-abstract]
        check_type("Probe.concurrent", probe.concurrent, bool)
    return probes


def check_selection(component: AnyComponent, result: Result, state: State, ctx: RoundContext, *args: object) -> Result:
    selection, next_selector_state = check_result_and_state(result, Selection, state)
    selection = check_type("the first item of the result", selection, Selection)
    array_shape = (ctx.n_clients,)
    check_ids("Selection.clients", selection.clients, ctx.n_clients)
    for field in ("uncapped", "plain", "zero_fill"):
        check_type(f"Selection.{field}", getattr(selection, field), bool)
    for field in ("scores", "reward"):
        if (selection_field_values := getattr(selection, field)) is not None:
            check_array(f"Selection.{field}", selection_field_values, array_shape, "if", allow_nan=True)
    for field, selection_field_values in check_type("Selection.score_terms", selection.score_terms, Mapping).items():  # type: ignore[type-abstract]
        check_array(f"Selection.score_terms[{field!r}]", selection_field_values, array_shape, "if", allow_nan=True)
    if selection.probability is not None:
        check_array("Selection.probability", selection.probability, array_shape, "if", 0, MAX_PROB_SUM, allow_nan=True)
    if selection.units is not None:
        check_array("Selection.units", selection.units, array_shape, "i")
    if selection.upload is not None:
        check_array("Selection.upload", selection.upload, array_shape, "f", allow_nan=True)
    return replace(selection, clients=selection.clients.copy()), next_selector_state  # the selector may reuse its array


def check_weight_override(component: AnyComponent, result: Result, state: State, round_outcome: RoundOutcome) -> Result:
    weight_override, _ = check_result_and_state(result, AggregationOverride, state, allow_none=True)
    if weight_override is None:
        return result
    array_shape = (len(round_outcome.clients),)
    if weight_override.keep is not None:
        check_array("AggregationOverride.keep", weight_override.keep, array_shape, "b")
    if weight_override.weights is not None:
        check_array("AggregationOverride.weights", weight_override.weights, array_shape, "if", min_value=0)
    check_type("AggregationOverride.absolute", weight_override.absolute, bool)
    return result


def check_selector_trace(component: AnyComponent, result: Result, state: State) -> Result:
    for k, traced_value in check_type("the result", result, Mapping).items():  # type: ignore[type-abstract]
        if not isinstance(traced_value, tuple) or len(traced_value) != 2:
            raise contract_error(f"the result for {k!r}", "a pair (mean, standard deviation)", traced_value)
        check_numbers_by_name("the result", {k: traced_value[0], f"{k}, deviation": traced_value[1]})
    return result


# --- aggregator, server optimizer, codec ------------------------------------------------------------------------------
def check_broadcast(component: AnyComponent, result: Result, state: State) -> Result:
    check_vectors_by_name("the result", result)
    vector_names = {vector_name for client_hook in component.hooks for vector_name in client_hook.downloads}
    if not vector_names <= set(result):
        raise contract_error(
            "the result", f"a mapping with the vectors {sorted(vector_names)} that the hooks download", sorted(result)
        )
    return result


def check_weights(component: AnyComponent, result: Result, n_used_samples: Ids, n_train: Ids) -> Result:
    return check_array("the result", result, (len(n_used_samples),), "if", min_value=0)


def check_direction(component: AnyComponent, result: Result, state: State, arrived: Any) -> Result:  # noqa: ANN401  an `agg.base.Arrived`
    from fedcohort.agg.base import Direction  # noqa: PLC0415 - imports torch

    checked_result, _ = check_result_and_state(result, Direction, state)
    direction = check_type("the first item of the result", checked_result, Direction)
    check_tensor("Direction.displacement", direction.displacement, tuple(arrived.mean.shape))
    if direction.weights is not None:
        check_array("Direction.weights", direction.weights, (len(arrived.outcome.clients),), "if", allow_nan=True)
    return result


def check_server_step(component: AnyComponent, result: Result, state: State, update_direction: Any) -> Result:  # noqa: ANN401  a tensor
    from torch import Tensor  # noqa: PLC0415

    model_displacement, _ = check_result_and_state(result, Tensor, state)
    check_tensor("the displacement", model_displacement, tuple(update_direction.shape))
    return result


def check_encoded_bytes(component: AnyComponent, result: Result, layout: object) -> Result:
    return check_integer("the result", result, 0)


# --- samples, deadline, device, availability, client, attack ----------------------------------------------------------
def check_flags(component: AnyComponent, result: Result, state: State, n_samples: Ids) -> Result:
    return check_array("the result", result, (len(n_samples),), "b")


def check_samples(component: AnyComponent, result: Result, state: State, sample_request: Any) -> Result:  # noqa: ANN401  a `SampleRequest`
    return check_ids("the result", result, sample_request.n, min_length=1)


def check_cohort_size(component: AnyComponent, result: Result, cohort_size: int) -> Result:
    return check_integer("the result", result, 1)


def check_duration(component: AnyComponent, result: Result, *args: object) -> float:
    return check_number("the result", result, 0.0, allow_infinite=True)


def check_job_timing(component: AnyComponent, result: Result, clients: Ids, work: Workload, draws: Draws) -> Timing:
    timing = check_type("the result", result, Timing)
    for phase_name in ("down_s", "infer_s", "unit_s", "up_s"):
        check_array(f"Timing.{phase_name}", getattr(timing, phase_name), (len(clients),), "if", min_value=0)
    if component.timed and (work.unit_load > 0).any() and not (timing.finish_s(1)[work.unit_load > 0] > 0).all():
        raise contract_error("the seconds of a client with work", "above 0 where `timed` is true", timing.finish_s(1))
    return timing


def check_ready_clients(component: AnyComponent, result: Result, draws: Draws) -> Result:
    return check_array("the result", result, (draws.n_clients,), "b")


def check_ready_schedule(component: AnyComponent, result: Result, draws: Draws) -> ReadySchedule | None:
    if result is None:
        return None
    schedule, n_clients = check_type("the result", result, ReadySchedule), draws.n_clients
    start_s_shape = getattr(schedule.start_s, "shape", (0,))
    check_array("ReadySchedule.start_s", schedule.start_s, start_s_shape[:1], "if", min_value=0)
    check_array("ReadySchedule.end_s", schedule.end_s, start_s_shape[:1], "if", min_value=0)
    check_array("ReadySchedule.period_s", schedule.period_s, (n_clients,), "if", min_value=0)
    if not schedule.period_s.all():
        raise contract_error("ReadySchedule.period_s", "above 0 for every client", schedule.period_s)
    for field in ("first_interval", "stop_interval"):
        check_array(f"ReadySchedule.{field}", getattr(schedule, field), (n_clients,), "i", 0, len(schedule.start_s))
    if (schedule.end_s < schedule.start_s).any():
        raise contract_error("ReadySchedule.end_s", "at least the start of each interval", schedule.end_s)
    return schedule


def check_learning_rate(component: AnyComponent, result: Result, round: int) -> float:
    return check_number("the result", result, 0.0, exclude_min=True)


def check_optimizer(component: AnyComponent, result: Result, y: object, lr: float) -> Result:
    from torch.optim import Optimizer  # noqa: PLC0415

    return check_type("the result", result, Optimizer)


def check_attacker_ids(component: AnyComponent, result: Result, n_clients: int, rng: object) -> Result:
    return check_ids("the result", result, n_clients)


def check_reported_values(component: AnyComponent, result: Result, signal_name: str, true_values: np.ndarray) -> Result:
    return check_array("the result", result, true_values.shape, "if", allow_nan=True)


STATE_CHECKS: Mapping[str, ResultCheck] = {"init": check_init, "observe": check_next_state, "describe": check_metrics}
CHECKS_BY_GROUP: Mapping[str, Mapping[str, ResultCheck]] = {
    "selector": {
        "init": check_init,
        "plan": check_probes,
        "select": check_selection,
        "observe": check_weight_override,
        "trace": check_selector_trace,
    },
    "agg": {"init": check_init, "broadcast": check_broadcast, "weights": check_weights, "direction": check_direction},
    "server": {"init": check_init, "step": check_server_step},
    "codec": {"bytes_up": check_encoded_bytes, "transmit": check_changed_update},
    "samples": {**STATE_CHECKS, "stores_losses": check_flags, "choose": check_samples, "report_losses": check_metrics},
    "deadline": {**STATE_CHECKS, "cohort_size": check_cohort_size, "announce": check_duration, "close": check_duration},
    "device": {"expect": check_job_timing, "sample": check_job_timing},
    "availability": {"ready": check_ready_clients, "schedule": check_ready_schedule},
    "client": {"lr_at": check_learning_rate, "optimizer": check_optimizer},
    "attack": {"attacker_ids": check_attacker_ids, "falsify": check_reported_values, **ATTACK_CHECKS},
    **DATA_CHECKS,
}
