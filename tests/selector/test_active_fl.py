"""Active FL: values and probabilities by hand, the split of the cohort, and the loss that each option reads."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from config_options import make_typed
from fedcohort.selector.active_fl import ActiveFl, State
from fedcohort.types import Population, ProbeResult, Selection
from optional_values import not_none
from round_harness import run_without_files
from run_harness import startup_notices
from selector_harness import ids, make_context, make_outcome

N = np.array([100, 400, 25, 100, 225])
LOSS = np.array([2.0, 0.5, 1.0, 1.0, 3.0])
NAN, INF = float("nan"), float("inf")


def active(**changes: Any) -> ActiveFl:
    return make_typed(ActiveFl, "selector", "active_fl", **{"alpha1": 0.4, "alpha3": 0.0, "tie": "id", **changes})


def select_clients(selector: ActiveFl, loss: np.ndarray = LOSS, **kwargs: Any) -> Selection:
    return selector.select(State(loss), make_context(signals={"n_train": N[: len(loss)]}, **kwargs), {})[0]


def test_values_and_probabilities_by_hand() -> None:
    """v = 10 2, 20 .5, 5 1, 10 1, 15 3. Clients 2 and 1 are excluded; the others have e^.2, e^.1 and e^.45."""
    selection = select_clients(active())
    np.testing.assert_allclose(not_none(selection.scores), [20, 10, 5, 10, 45], rtol=1e-14)
    expected = np.array([np.exp(0.2), 0, 0, np.exp(0.1), np.exp(0.45)])
    np.testing.assert_allclose(not_none(selection.probability), expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        not_none(selection.probability), [0.31359141, 0, 0, 0.28374924, 0.40265934], atol=1e-8, rtol=0
    )


def test_inclusion_probabilities_of_two_draws() -> None:
    """Client 0: p0 + p3 p0 / (1 - p3) + p4 p0 / (1 - p4) = .64921127, and so on. Four sigma of 3000 rounds."""
    p = np.array([0.64921127, 0, 0, 0.60465399, 0.74613474])
    counts = np.bincount(
        np.concatenate([select_clients(active(), seed=seed).clients for seed in range(3000)]), minlength=len(N)
    )
    assert (np.abs(counts / 3000 - p) <= 4 * np.sqrt(p * (1 - p) / 3000)).all()


def test_the_mean_loss_over_the_root_prefers_small_clients() -> None:
    """v = .2, .025, .2, .1, .2: clients 1 and 3 are excluded."""
    selection = select_clients(active(value="mean"))
    np.testing.assert_allclose(not_none(selection.scores), [0.2, 0.025, 0.2, 0.1, 0.2], rtol=1e-14)
    np.testing.assert_allclose(not_none(selection.probability), [1 / 3, 0, 1 / 3, 0, 1 / 3], atol=1e-8)


def test_equal_values_at_the_cut_are_excluded_at_random() -> None:
    """Clients 1 and 3 both have 10."""
    excluded = {
        int(not_none(select_clients(active(tie="random"), seed=seed).probability)[1] == 0) for seed in range(20)
    }
    assert excluded == {0, 1}


@pytest.mark.parametrize(("cohort", "n_by_value"), [(10, 9), (20, 18), (3, 2), (1, 0)])
def test_the_cohort_has_a_part_by_value(cohort: int, n_by_value: int) -> None:
    assert active(alpha3=0.1).count_drawn_by_value(cohort) == n_by_value


def test_single_places_are_drawn_by_value_with_the_share() -> None:
    """Clients 1 and 2 of five have too low values, and get .5 x 2 / 5 of all draws; 200 draws, 4 sigma."""
    excluded = 0
    for seed in range(200):
        ctx = replace(make_context(5, 1, 6, range(5), {"n_train": np.append(N, 1)}, seed), in_flight=ids(5))
        selection, _ = active(alpha3=0.5).select(State(np.append(LOSS, 1.0)), ctx, {})
        excluded += bool(np.isin(selection.clients, [1, 2]).any())
    assert abs(excluded - 40) < 4 * np.sqrt(200 * 0.2 * 0.8)


def test_the_parts_are_disjoint_and_excluded_clients_return_uniformly() -> None:
    """m = 3: two of {0, 3, 4} by value and the last uniformly from the three others, of which two are excluded."""
    cohorts = [select_clients(active(alpha3=0.1), cohort=3, seed=seed).clients for seed in range(300)]
    assert all(len(np.unique(clients)) == 3 for clients in cohorts)
    excluded = np.mean([np.isin(clients, [1, 2]).any() for clients in cohorts])
    assert abs(excluded - 2 / 3) < 4 * np.sqrt(2 / 9 / 300)


@pytest.mark.parametrize("options", [{"alpha3": 1.0}, {"alpha1": 0.0, "alpha2": 0.0}])
def test_without_values_it_is_random_selection(options: dict[str, float]) -> None:
    """Each client has two of five places; four sigma of 1500 rounds."""
    selections = [select_clients(active(**options), seed=seed) for seed in range(1500)]
    np.testing.assert_allclose(not_none(selections[0].probability), 0.2, rtol=1e-12)
    share = np.bincount(np.concatenate([selection.clients for selection in selections])) / 1500
    assert (np.abs(share - 0.4) < 4 * np.sqrt(0.24 / 1500)).all()


def test_new_clients_have_the_largest_known_value() -> None:
    """The largest of the available ones: client 4 is away."""
    loss = np.array([2.0, NAN, 1.0, NAN, 3.0])
    scores = not_none(select_clients(active(), loss, available=[0, 1, 2, 3]).scores)
    np.testing.assert_allclose(scores[:4], [20, 20, 5, 20], rtol=1e-14)
    assert not_none(select_clients(active(), np.full(5, NAN)).scores).tolist() == [0] * 5


def test_reported_losses_are_kept_where_they_are_finite() -> None:
    """0.5 is the mean over the local steps, or a sum of 2 over 4 samples; the second client's loss is not finite."""
    path = make_outcome(0, [0, 4], train_loss=[0.5, NAN])
    first = make_outcome(0, [0, 4], loss_sum=[2.0, INF], n_used=[4.0, 4.0])
    for loss, result in (("train", path), ("first_epoch", first)):
        assert active(loss=loss).observe(State(LOSS), result)[1].loss.tolist() == [0.5, *LOSS[1:]]


def test_a_client_without_a_sample_has_no_sum_of_losses() -> None:
    state = active(loss="first_epoch").observe(State(LOSS), make_outcome(0, [0], loss_sum=[0.0], n_used=[0.0]))[1]
    assert state.loss.tolist() == [0.0, *LOSS[1:]]


def test_the_loss_at_the_start_is_queried_from_the_cohort() -> None:
    selector, ctx = active(loss="start", alpha3=0.5), make_context(signals={"n_train": N})
    (probe,) = selector.plan(State(LOSS), ctx)
    selection, state = selector.select(State(LOSS), ctx, {})
    assert (probe.signal, probe.concurrent) == ("loss", True)
    assert probe.clients.tolist() == selection.clients.tolist()
    answers = {"loss": ProbeResult(ids(0, 4), np.array([0.25, 4.0]))}
    after = selector.observe(state, make_outcome(0, [0, 4], answers))[1]
    assert after.loss.tolist() == [0.25, 0.5, 1.0, 1.0, 4.0]
    assert active().plan(State(LOSS), ctx) == ()


def test_before_the_first_round_no_value_is_known() -> None:
    assert np.isnan(active().init(Population(3, 2, 2, {})).loss).all()


@pytest.mark.parametrize(
    ("options", "expected"),
    [(("cohort=1",), True), (("cohort=10",), False), (("cohort=1", "selector.alpha3=1"), False)],
)
def test_a_notice_says_that_every_cohort_is_uniform(options: tuple[str, ...], expected: bool) -> None:
    lines = startup_notices("selector=active_fl", *options)
    assert any(line.startswith("selector=active_fl draws floor((1 - alpha3) x cohort)") for line in lines) == expected


def test_the_reported_losses_cost_four_bytes_each() -> None:
    """Two cohorts of four send a loss each, and twelve clients their size once; random selection sends neither."""
    rows = [run_without_files(f"selector={name}", "rounds=2", "cohort=4") for name in ("random", "active_fl")]
    cost = [run.last.metrics["comm/up_bytes"] for run in rows]
    assert cost[1] - cost[0] == 4 * 4 * 2 + 4 * 12
