"""Checks of the results of components' methods in every round: `CHECKS` has a function for each group and method.

A check gets the component, the result and the arguments of the call. It returns the result that the round uses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcohort.availability.schedule import Schedule
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
from fedcohort.round.data_contracts import DATA_CHECKS
from fedcohort.types import Advice, Ids, Probe, RoundContext, RoundOutcome, Selection

Part = Any  # a component of the check's group
Result = Any
State = Any
Check = Callable[..., Result]
ROUNDING = 1 + 1e-9  # upper bound of probabilities that are sums


def check_init(part: Part, state: State, *args: object) -> State:
    """Check that the initial state of a component can be saved in a checkpoint."""
    from fedcohort.state import pack_state  # noqa: PLC0415 - options are checked before torch is imported

    try:
        pack_state(state)
    except TypeError as error:
        raise ComponentError(f"the state can't be saved in a checkpoint: {error}") from error
    return state


def check_state(part: Part, result: Result, state: State, *args: object) -> State:
    return check_state_type(result, state)


def check_metrics(part: Part, result: Result, *args: object) -> Result:
    check_numbers_by_name("the result", result)
    return result


# --- selector ------------------------------------------------------------------------------------------------------
def check_probes(part: Part, result: Result, state: State, ctx: RoundContext) -> Sequence[Probe]:
    """Return the probes as a tuple, as a generator can be read only once; raise an error for wrong types or ids."""
    probes = tuple(result)
    for probe in probes:
        check_type("a probe", probe, Probe)
        check_type("Probe.signal", probe.signal, str)
        check_ids("Probe.clients", probe.clients, ctx.n_clients)
        check_type("Probe.options", probe.options, Mapping)  # type: ignore[type-abstract]
        check_type("Probe.concurrent", probe.concurrent, bool)
    return probes


def check_selection(part: Part, result: Result, state: State, ctx: RoundContext, *args: object) -> Result:
    selection, next_state = check_result_and_state(result, Selection, state)
    chosen = check_type("the first item of the result", selection, Selection)
    shape = (ctx.n_clients,)
    check_ids("Selection.clients", chosen.clients, ctx.n_clients)
    for name in ("uncapped", "plain", "zero_fill"):
        check_type(f"Selection.{name}", getattr(chosen, name), bool)
    for name in ("scores", "reward"):
        if (values := getattr(chosen, name)) is not None:
            check_array(f"Selection.{name}", values, shape, "if", allow_nan=True)
    for name, values in check_type("Selection.score_terms", chosen.score_terms, Mapping).items():  # type: ignore[type-abstract]
        check_array(f"Selection.score_terms[{name!r}]", values, shape, "if", allow_nan=True)
    if chosen.probability is not None:
        check_array("Selection.probability", chosen.probability, shape, "if", 0, ROUNDING, allow_nan=True)
    if chosen.units is not None:
        check_array("Selection.units", chosen.units, shape, "i")
    if chosen.upload is not None:
        check_array("Selection.upload", chosen.upload, shape, "f", allow_nan=True)
    return replace(chosen, clients=chosen.clients.copy()), next_state  # the selector may reuse its array


def check_advice(part: Part, result: Result, state: State, outcome: RoundOutcome) -> Result:
    advice, _ = check_result_and_state(result, Advice, state, allow_none=True)
    if advice is None:
        return result
    shape = (len(outcome.clients),)
    if advice.keep is not None:
        check_array("Advice.keep", advice.keep, shape, "b")
    if advice.weights is not None:
        check_array("Advice.weights", advice.weights, shape, "if", min_value=0)
    check_type("Advice.absolute", advice.absolute, bool)
    return result


def check_trace(part: Part, result: Result, state: State) -> Result:
    for name, spread in check_type("the result", result, Mapping).items():  # type: ignore[type-abstract]
        if not isinstance(spread, tuple) or len(spread) != 2:
            raise contract_error(f"the result for {name!r}", "a pair (mean, standard deviation)", spread)
        check_numbers_by_name("the result", {name: spread[0], f"{name}, deviation": spread[1]})
    return result


# --- aggregator, server optimizer, codec ------------------------------------------------------------------------------
def check_broadcast(part: Part, result: Result, state: State) -> Result:
    check_vectors_by_name("the result", result)
    names = {name for hook in part.hooks for name in hook.downloads}
    if not names <= set(result):
        raise contract_error(
            "the result", f"a mapping with the vectors {sorted(names)} that the hooks download", sorted(result)
        )
    return result


def check_weights(part: Part, result: Result, n_used: Ids, n_train: Ids) -> Result:
    check_array("the result", result, (len(n_used),), "if", min_value=0)
    return result


def check_direction(part: Part, result: Result, state: State, arrived: Any) -> Result:  # noqa: ANN401  an `agg.base.Arrived`
    from fedcohort.agg.base import Direction  # noqa: PLC0415 - imports torch

    first, _ = check_result_and_state(result, Direction, state)
    direction = check_type("the first item of the result", first, Direction)
    check_tensor("Direction.displacement", direction.displacement, tuple(arrived.mean.shape))
    if direction.weights is not None:
        check_array("Direction.weights", direction.weights, (len(arrived.outcome.clients),), "if", allow_nan=True)
    return result


def check_server_step(part: Part, result: Result, state: State, direction: Any) -> Result:  # noqa: ANN401  a tensor
    from torch import Tensor  # noqa: PLC0415

    displacement, _ = check_result_and_state(result, Tensor, state)
    check_tensor("the displacement", displacement, tuple(direction.shape))
    return result


def check_encoded_bytes(part: Part, result: Result, layout: object) -> Result:
    check_integer("the result", result, 0)
    return result


def check_decoded_update(part: Part, result: Result, delta: Any, *args: object) -> Result:  # noqa: ANN401  a tensor
    check_tensor("the result", result, tuple(delta.shape))
    return result


# --- samples, deadline, device, availability, client, attack ----------------------------------------------------------
def check_flags(part: Part, result: Result, state: State, n: Ids) -> Result:
    check_array("the result", result, (len(n),), "b")
    return result


def check_positions(part: Part, result: Result, state: State, request: Any) -> Result:  # noqa: ANN401  a `SampleRequest`
    check_ids("the result", result, request.n, min_length=1)
    return result


def check_cohort_size(part: Part, result: Result, cohort: int) -> Result:
    check_integer("the result", result, 1)
    return result


def check_seconds(part: Part, result: Result, *args: object) -> float:
    return check_number("the result", result, 0.0, allow_infinite=True)


def check_timing(part: Part, result: Result, clients: Ids, work: Workload, draws: Draws) -> Timing:
    timing = check_type("the result", result, Timing)
    for name in ("down", "infer", "unit", "up"):
        check_array(f"Timing.{name}", getattr(timing, name), (len(clients),), "if", min_value=0)
    if part.timed and (work.load > 0).any() and not (timing.finish(1)[work.load > 0] > 0).all():
        raise contract_error("the seconds of a client with work", "above 0 where `timed` is true", timing.finish(1))
    return timing


def check_ready(part: Part, result: Result, draws: Draws) -> Result:
    check_array("the result", result, (draws.n_clients,), "b")
    return result


def check_schedule(part: Part, result: Result, draws: Draws) -> Schedule | None:
    if result is None:
        return None
    schedule, n = check_type("the result", result, Schedule), draws.n_clients
    starts = getattr(schedule.start, "shape", (0,))
    check_array("Schedule.start", schedule.start, starts[:1], "if", min_value=0)
    check_array("Schedule.end", schedule.end, starts[:1], "if", min_value=0)
    check_array("Schedule.period", schedule.period, (n,), "if", min_value=0)
    if not schedule.period.all():
        raise contract_error("Schedule.period", "above 0 for every client", schedule.period)
    for name in ("first", "stop"):
        check_array(f"Schedule.{name}", getattr(schedule, name), (n,), "i", 0, len(schedule.start))
    if (schedule.end < schedule.start).any():
        raise contract_error("Schedule.end", "at least the start of each interval", schedule.end)
    return schedule


def check_learning_rate(part: Part, result: Result, round: int) -> float:
    return check_number("the result", result, 0.0, exclude_min=True)


def check_optimizer(part: Part, result: Result, y: object, lr: float) -> Result:
    from torch.optim import Optimizer  # noqa: PLC0415

    return check_type("the result", result, Optimizer)


def check_liars(part: Part, result: Result, n_clients: int, rng: object) -> Result:
    check_ids("the result", result, n_clients)
    return result


def check_reported_values(part: Part, result: Result, signal: str, values: np.ndarray) -> Result:
    check_array("the result", result, values.shape, "if", allow_nan=True)
    return result


STATEFUL: Mapping[str, Check] = {"init": check_init, "observe": check_state, "describe": check_metrics}
CHECKS: Mapping[str, Mapping[str, Check]] = {
    "selector": {
        "init": check_init,
        "plan": check_probes,
        "select": check_selection,
        "observe": check_advice,
        "trace": check_trace,
    },
    "agg": {"init": check_init, "broadcast": check_broadcast, "weights": check_weights, "direction": check_direction},
    "server": {"init": check_init, "step": check_server_step},
    "codec": {"bytes_up": check_encoded_bytes, "transmit": check_decoded_update},
    "samples": {**STATEFUL, "keeps_list": check_flags, "choose": check_positions, "report_losses": check_metrics},
    "deadline": {**STATEFUL, "cohort_size": check_cohort_size, "announce": check_seconds, "close": check_seconds},
    "device": {"expect": check_timing, "sample": check_timing},
    "availability": {"ready": check_ready, "schedule": check_schedule},
    "client": {"lr_at": check_learning_rate, "optimizer": check_optimizer},
    "attack": {"liars": check_liars, "claim": check_reported_values},
    **DATA_CHECKS,
}
