"""What a selector may ask, and what the answers weigh."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from case_loop import for_all
from config_options import make_component
from fedcohort.errors import FedcohortError, IncompatibleConfig
from fedcohort.flat import Layout, TensorBlock
from fedcohort.rng import Draws
from fedcohort.round.workload import (
    are_all_available,
    list_queried_clients,
    make_untimed_jobs,
    mark_answering_clients,
    verify_selection,
    verify_weight_override,
)
from fedcohort.training.upload import draw_tensor_masks
from fedcohort.types import AggregationOverride, Ids, Probe, Selection
from selector_harness import make_context

LAYOUT = Layout((TensorBlock("w", (2, 3), 0), TensorBlock("b", (2,), 6)), (), ())
NAN = float("nan")


def ids(*clients: int) -> Ids:
    return np.array(clients, np.int64)


def check(codec: str, *clients: int, **requests: Any) -> None:
    """Of five clients 1, 2 and 4 are available, and two are wanted."""
    ctx = make_context(cohort=2, n_clients=5, available=[1, 2, 4])
    verify_selection(Selection(ids(*clients), **requests), ctx, make_component("codec", codec), carries_late_jobs=False)


def test_valid_requests_are_accepted() -> None:
    """Units and shares of clients that are not selected are not checked."""
    check("none")
    check("none", 1, 4)
    check("none", 1, 2, 4, uncapped=True)
    check("none", 1, 4, units=np.array([0, 1, 0, 0, 9]))
    check("none", 1, 4, upload=np.array([0.0, 1e-9, NAN, 7.0, 1.0]))
    check("mask", 1, 4, upload=np.array([0.5, 1.0, 0.5, 0.5, 1.0]))


@for_all(
    "clients, requests, message",
    [
        ((1, 3), {}, "not all of them are available"),  # one of them is
        ((0, 3), {}, "not all of them are available"),
        ((1, 2, 4), {}, "chose 3 clients, but cohort=2"),
        ((1, 4), {"units": np.array([1, 1, 1, 1, 0])}, "units of local work"),
        ((1, 4), {"units": np.array([1, 1])}, "units of local work"),
        ((1, 4), {"upload": np.array([1.0, 0.5, 1.0, 1.0, 0.0])}, "upload probabilities must be numbers in"),
        ((1, 4), {"upload": np.array([1.0, 0.5, 1.0, 1.0, 1.1])}, "upload probabilities must be numbers in"),
        ((1, 4), {"upload": np.array([1.0, NAN, 1.0, 1.0, 1.0])}, "upload probabilities must be numbers in"),
        ((1, 4), {"upload": np.array([1.0, 1.0])}, "upload probabilities must be numbers in"),
    ],
)
def test_invalid_requests_are_rejected(clients: tuple[int, ...], requests: dict[str, Any], message: str) -> None:
    with pytest.raises(FedcohortError, match=message):
        check("none", *clients, **requests)


def test_a_codec_that_trains_for_its_upload_leaves_no_tensor_out() -> None:
    with pytest.raises(IncompatibleConfig, match="choose codec=none"):
        check("mask", 1, 4, upload=np.array([1.0, 1.0, 1.0, 1.0, 0.9]))


@pytest.mark.parametrize("carries_late_jobs", [False, True])
def test_a_round_of_fedavg_has_no_late_updates_of_other_rounds(carries_late_jobs: bool) -> None:
    ctx, codec = make_context(cohort=2, n_clients=5), make_component("codec", "none")
    verify_selection(Selection(ids(1)), ctx, codec, carries_late_jobs)
    with (
        pytest.raises(IncompatibleConfig, match="choose deadline=wait_for_all") if carries_late_jobs else nullcontext()
    ):
        verify_selection(Selection(ids(1), plain=True), ctx, codec, carries_late_jobs)


class Absolute:
    absolute = True
    weighs = True


@pytest.mark.parametrize(
    "advice",
    [
        None,
        AggregationOverride(),
        AggregationOverride(weights=np.array([0.0, 2.0])),
        AggregationOverride(keep=np.array([False, True])),
        AggregationOverride(weights=np.array([0.0, 2.0]), absolute=True),
    ],
)
def test_valid_advice_is_accepted(advice: AggregationOverride | None) -> None:
    verify_weight_override(advice, Absolute())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("advice", "message"),
    [
        (AggregationOverride(weights=np.ones(2), absolute=True), "returns absolute weights: declare"),
        (AggregationOverride(weights=np.ones(2)), "returns weights: declare"),
    ],
)
def test_invalid_advice_is_rejected(advice: AggregationOverride, message: str) -> None:
    with pytest.raises(FedcohortError, match=message):
        verify_weight_override(advice, make_component("selector", "random"))


def test_units_are_shared_or_per_client() -> None:
    codec, draws = make_component("codec", "none"), Draws(0, 5, 0)
    plain = make_untimed_jobs(Selection(ids(1, 4)), 3, LAYOUT, codec, 0, draws)
    assert (plain.client.tolist(), plain.assigned.tolist(), plain.tensor_mask) == ([1, 4], [3, 3], [None, None])
    per_client = make_untimed_jobs(Selection(ids(1, 4), units=np.array([9, 1, 9, 9, 2])), 3, LAYOUT, codec, 0, draws)
    assert per_client.assigned.tolist() == [1, 2]
    assert per_client.assigned.dtype == np.int64


def test_the_size_of_an_answer_is_what_is_sent() -> None:
    """A weight of 6 numbers and a bias of 2, 4 bytes each, and 5 further bytes whatever is left out."""
    codec, draws, all_clients = make_component("codec", "none"), Draws(0, 40, 0), np.arange(40)
    upload_shares = np.full(40, 0.5)
    assigned = make_untimed_jobs(Selection(all_clients, upload=upload_shares), 1, LAYOUT, codec, 5, draws)
    sent_tensors = [
        np.ones(2, bool) if mask is None else mask
        for mask in draw_tensor_masks(upload_shares, all_clients, LAYOUT, draws)
    ]
    assert assigned.bytes_up.tolist() == [5 + 4 * (6 * w + 2 * b) for w, b in sent_tensors]
    assert set(assigned.bytes_up.tolist()) == {5, 5 + 8, 5 + 24, 5 + 32}
    complete = make_untimed_jobs(Selection(all_clients), 1, LAYOUT, codec, 5, draws)
    assert complete.bytes_up.tolist() == [5 + 32] * 40


def test_an_empty_answer_has_no_bytes() -> None:
    """A codec of quantised tensors has a header, which is sent with any tensor, and not without tensors."""
    codec, tiny = make_component("codec", "quant"), np.full(40, 1e-12)
    assigned = make_untimed_jobs(Selection(np.arange(40), upload=tiny), 1, LAYOUT, codec, 5, Draws(0, 40, 0))
    assert assigned.bytes_up.tolist() == [5.0] * 40


@for_all("seed", range(20))
def test_the_availability_check_agrees_with_a_comparison_of_all_ids(seed: int) -> None:
    rng = np.random.default_rng(seed)
    available = np.flatnonzero(rng.random(12) < rng.choice([0.0, 0.5, 1.0]))
    for size in range(4):
        clients = rng.integers(0, 12, size)
        assert are_all_available(clients, available) == bool(np.isin(clients, available).all())


def test_queried_clients_are_listed_once() -> None:
    probes = [Probe("loss", ids(4, 1)), Probe("val_loss", ids(1, 2), concurrent=True)]
    assert list_queried_clients(probes).tolist() == [1, 2, 4]
    assert list_queried_clients(probes, ids(0, 4)).tolist() == [0, 1, 2, 4]
    assert list_queried_clients([]).dtype == np.int64


def test_concurrent_and_blocking_probes_without_options_answer_a_query() -> None:
    probes = [Probe("loss", ids(0), concurrent=True), Probe("loss", ids(1)), Probe("loss", ids(2), {"tau": 1.0})]
    assert mark_answering_clients("loss", ids(0, 1, 2, 3), probes).tolist() == [True, True, False, False]
    assert mark_answering_clients("val_loss", ids(0, 1), probes).tolist() == [False, False]
