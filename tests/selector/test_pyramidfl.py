"""PyramidFL: who does and uploads how much, by hand, and what a run then does, sends and is charged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_typed
from fedcohort.component import Requirement
from fedcohort.errors import OptionError
from fedcohort.selector.pyramidfl import (
    UNCHANGED_TRAINING_REQUIREMENT,
    VARIABLE_WORK_REQUIREMENT,
    PyramidFl,
    compute_importances,
    local_work_factors,
    predict_job_seconds,
    update_drop_rates,
)
from fedcohort.selector.ranking_terms import client_utilities
from round_harness import run_without_files
from run_harness import FinishedRun, run_training, same_bits
from selector_harness import World, ids, make_context, make_outcome, play_rounds

ONES = np.ones(3)
NAN = float("nan")
# the spec's three clients: training takes 10, 20 and 5 s for E = 5 units, the upload 10 s each
SIGNALS = {
    "expected_s": np.array([20.0, 30.0, 15.0]),
    "expected_unit_s": np.array([2.0, 4.0, 1.0]),
    "expected_up_s": np.array([10.0, 10.0, 10.0]),
    "n_train": np.array([5, 9, 1]),
    "pass_units": ONES,
}


def pyramid(**changes: Any) -> PyramidFl:
    return make_typed(PyramidFl, "selector", "pyramidfl", **changes)


def select_clients(cohort: int = 3, units: int = 5, seed: int = 0, **changes: Any) -> Any:
    selector = pyramid(**changes)
    ctx = make_context(0, cohort, 3, signals=SIGNALS, seed=seed)
    object.__setattr__(ctx, "units", units)
    world = World(3, cohort)
    state = selector.init(world.population(selector.needs))
    object.__setattr__(state, "importance", np.array([5.0, 9.0, 1.0]))
    return selector.select(state, ctx, {})[0]


def test_the_most_important_clients_upload_most() -> None:
    """Ranks 1, 0, 2 of importances 5, 9, 1: .1 + rank (.6 - .1) / 3."""
    np.testing.assert_allclose(
        update_drop_rates(np.array([5.0, 9, 1]), 0.1, 0.6, 3), [0.266667, 0.1, 0.433333], atol=5e-7
    )
    np.testing.assert_allclose(update_drop_rates(np.array([4.0, 4, 1]), 0.1, 0.6, 3), [0.1, 0.1, 0.433333], atol=5e-7)
    assert not len(update_drop_rates(np.empty(0), 0.1, 0.6, 3))


def test_fast_clients_train_longer_up_to_the_slowest_clients_time() -> None:
    """c = (17.33, 29, 10.67), R = 29: floor(11.67 / 2) = 5 and floor(18.33 / 1) = 18 units more, half of them."""
    rho = update_drop_rates(np.array([5.0, 9, 1]), 0.1, 0.6, 3)
    c = predict_job_seconds(make_context(0, 3, 3, signals=SIGNALS), ids(0, 1, 2), rho)
    np.testing.assert_allclose(c, [17.333333, 29.0, 10.666667], atol=5e-7)
    unit_s = SIGNALS["expected_unit_s"]
    np.testing.assert_allclose(local_work_factors(c, unit_s, 5, 0.5), [1.5, 1, 2.8])
    np.testing.assert_allclose(local_work_factors(c, unit_s, 5, 1.0), [2.0, 1, 4.6])
    np.testing.assert_allclose(local_work_factors(c, unit_s / 100, 5, 1.0)[[0, 2]], 11.0)  # at most 10 E more
    np.testing.assert_array_equal(local_work_factors(c, 0 * unit_s, 5, 1.0), ONES)
    assert not len(local_work_factors(np.empty(0), np.empty(0), 5, 1.0))


def test_the_whole_selection_by_hand() -> None:
    """1.5, 1 and 2.8 times 5 units: 7.5 is 8 when rounded, 14."""
    selection = select_clients(beta=0.5)
    np.testing.assert_allclose(selection.score_terms["drop"], [0.266667, 0.1, 0.433333], atol=5e-7)
    np.testing.assert_allclose(selection.upload, 1 - selection.score_terms["drop"])
    np.testing.assert_allclose(selection.score_terms["work"], [1.5, 1, 2.8])
    assert selection.units.tolist() == [8, 5, 14]
    assert selection.units.dtype == np.int64
    assert not selection.zero_fill
    assert select_clients(drop_agg="zeros").zero_fill


def test_no_client_exceeds_the_time_of_the_slowest() -> None:
    """However beta rounds: what is added takes no longer than R - c."""
    rng = np.random.default_rng(0)
    for beta in (0.3, 0.5, 0.9, 1.0):
        c, unit = rng.random(50) * 100, 0.1 + rng.random(50) * 5
        units = np.floor(local_work_factors(c, unit, 5, beta) * 5 + 0.5)
        assert (c + (units - 5) * unit <= c.max() + 1e-6).all()


def test_passes_cap_the_work() -> None:
    """5 passes are 5 units if a unit is an epoch, so that no client does more than E; 8 passes are 8 units."""
    assert select_clients(passes=5).units.tolist() == [5, 5, 5]
    assert select_clients(passes=8).units.tolist() == [8, 5, 8]
    assert select_clients(passes=8, units=3).units.max() == 8
    assert select_clients(passes=1, units=1).units.tolist() == [1, 1, 1]
    assert "pass_units" in pyramid(passes=5).needs
    assert "pass_units" not in pyramid().needs


def test_the_slowest_of_a_larger_cohort_are_dropped() -> None:
    """1.5 x 2 = 3 are chosen: 20, 30 and 15 s; with 1 there is Oort's cohort."""
    assert {tuple(select_clients(2, seed=s, overcommit=1.5).clients.tolist()) for s in range(9)} == {(0, 2)}
    exact = {tuple(select_clients(2, seed=s, overcommit=1.0).clients.tolist()) for s in range(30)}
    assert exact == {(0, 1), (0, 2), (1, 2)}


def test_the_norm_is_that_of_the_update() -> None:
    """D = (1, 0) has the squared norm 1; the code takes D - w = (-2, -4), which has 20."""
    D, w = np.array([1.0, 0]), np.array([3.0, 4.0])
    assert compute_importances(np.array([np.linalg.norm(D)]), np.array([100.0]), np.ones(1)) ** 2 == 1.0
    assert np.linalg.norm(D - w) ** 2 == pytest.approx(20.0)


def test_invalid_utility_has_the_lowest_importance() -> None:
    norm = np.array([NAN, np.inf, -1.0, 2.0, 1e300, 4.0])
    count = np.array([3.0, 3.0, 3.0, NAN, 1e300, 50.0])
    importance = compute_importances(norm, count, np.ones(6))
    assert importance[:4].tolist() == [0, 0, 0, 0]
    assert np.isfinite(importance[4])
    assert importance[5] == 2.0


def test_the_state_after_a_round_by_hand() -> None:
    """Norm 4 of 50 samples is 2; over 4 steps .5. Who fails keeps n_k, who arrived has the expected duration."""
    signals: dict[str, Any] = {"loss_count": [50.0], "loss_squares": [200.0], "update_norm": [4.0], "steps": [4.0]}
    for per_step, expected in ((False, 2.0), (True, 0.5)):
        selector = pyramid(per_step=per_step)
        state = selector.init(World(3, 2).population(selector.needs))
        after = selector.observe(state, make_outcome(4, [2], failed=[0], **signals))[1]
        assert after.importance.tolist() == [*state.importance[:2], expected]
        assert after.ranking_state.utilities[2] == client_utilities(np.array([50.0]), np.array([200.0]))[0]
        assert after.ranking_state.last_rounds.tolist() == [0, 0, 5]
        np.testing.assert_array_equal(after.ranking_state.seconds, state.ranking_state.seconds)
        assert ("steps" in selector.needs) == per_step
    assert "duration" not in pyramid().needs


def test_importance_decides_from_the_second_time_on() -> None:
    """All 12 of 12 train: who had the largest ||D|| |B| has the smallest drop in the next round."""
    steps = play_rounds(pyramid(), World(cohort=12), 3)
    importance, drop = steps[1].after.importance, steps[2].selection.score_terms["drop"]
    assert np.argsort(-importance).tolist() == np.argsort(drop).tolist()
    assert drop.min() == pytest.approx(0.1)
    assert drop.max() == pytest.approx(0.1 + 11 * 0.5 / 12)


@pytest.mark.parametrize(
    ("high", "beta", "requirements"),
    [
        (0.6, 1.0, {UNCHANGED_TRAINING_REQUIREMENT, VARIABLE_WORK_REQUIREMENT}),
        (0.6, 0.0, {UNCHANGED_TRAINING_REQUIREMENT}),
        (0.0, 1.0, {VARIABLE_WORK_REQUIREMENT}),
        (0, 0, set()),
    ],
)
def test_options_decide_the_requirements(high: float, beta: float, requirements: set[Requirement]) -> None:
    """Dropped tensors are of a finished update; more work for some is possible only where work can differ."""
    assert pyramid(low=0.0, high=high, beta=beta).requirements == requirements


@pytest.mark.parametrize("changes", [{"low": 0.7}, {"cutoff": 2.0}, {"beta": -0.1}, {"preferred": 101.0}])
def test_invalid_options_are_rejected(changes: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="must be a"):
        replace(pyramid(), **changes)  # type: ignore[arg-type]


# --- what the engine makes of it: 12 clients, 4 a round, E = 2, logistic regression: a weight of 640 and a bias of 10
SIZES = ("partition=dirichlet", "partition.alpha=1")
RUN = ("selector=pyramidfl", *SIZES)
WEIGHT, BIAS, FORWARD = 640, 10, 2 * 640


@pytest.fixture(scope="module")
def plain() -> FinishedRun:
    """The run that others are compared with."""
    return run_without_files(*RUN)


def assigned_units(run: FinishedRun, t: int) -> np.ndarray:
    """The units of round t, of those selected."""
    report = run.reports[t + 1]
    units: np.ndarray = report.clients["units"][report.cohort]
    return units


def test_the_actual_work_is_charged() -> None:
    """Three forward passes per sample and epoch; no client finishes after the slowest."""
    run = run_without_files(*RUN, "client.epochs=10", "device.lam=0")
    flops = np.diff([report.metrics["comp/client_flops"] for report in run.reports])
    for t, cost in enumerate(flops):
        cohort = run.reports[t + 1].cohort
        assert cost == pytest.approx(3 * FORWARD * float(assigned_units(run, t) @ run.info.n_train[cohort]))
        seconds = run.reports[t + 1].clients["finish_s"][cohort]
        np.testing.assert_allclose(
            seconds, assigned_units(run, t) / 10 * run.info.n_train[cohort]
        )  # n sample-times for E = 10
        slowest = run.info.n_train[cohort].argmax()
        assert assigned_units(run, t)[slowest] == 10
        assert seconds.max() == pytest.approx(seconds[slowest])
    assert max(assigned_units(run, t).max() for t in range(3)) > 10


def test_the_transmitted_bytes_are_charged() -> None:
    """Each of two tensors is sent or not: a client uploads 0, 10, 640 or 650 numbers, and 8 bytes for Oort's two."""
    run = run_without_files(*RUN, "selector.high=0.9", "selector.low=0.5", "rounds=6")
    up = np.diff([report.metrics["comm/up_bytes"] for report in run.reports]) - 4 * 8
    least = [
        4 * sum(parts) for parts in np.array(np.meshgrid(*[[0, BIAS, WEIGHT, WEIGHT + BIAS]] * 4)).reshape(4, -1).T
    ]
    assert set(up.tolist()) <= set(least)
    assert len(set(up.tolist())) > 1
    assert (up < 4 * 4 * (WEIGHT + BIAS)).any()
    complete = run_without_files(*RUN, "selector.high=0", "selector.low=0")
    assert (
        np.diff([r.metrics["comm/up_bytes"] for r in complete.reports]).tolist() == [4 * (4 * (WEIGHT + BIAS) + 8)] * 3
    )


def test_without_drops_and_more_work_it_trains_as_any_selector() -> None:
    """If all clients are selected, low = high = beta = 0 gives the bits of selector=full."""
    overrides = ("cohort=12", "rounds=2", "selector.overcommit=1")
    disabled = ("selector.high=0", "selector.low=0", "selector.beta=0")
    a = run_without_files(*RUN, *overrides, *disabled)
    assert same_bits(a, run_without_files("selector=full", *SIZES, *overrides[:2]))


@pytest.mark.parametrize("kind", ["vectorised", "sequential", "debug"])
def test_engines_agree(plain: FinishedRun, kind: str) -> None:
    overrides = (*RUN, "client.momentum=0.5") if kind == "vectorised" else RUN
    reference = plain if kind != "vectorised" else run_without_files(*overrides, "engine=auto")
    other_engine = run_without_files(*overrides, f"engine={kind}")
    torch.testing.assert_close(other_engine.weights(), reference.weights(), atol=1e-5, rtol=0)
    assert other_engine.cohorts == reference.cohorts
    assert [r.metrics["comm/up_bytes"] for r in reference.reports] == [
        r.metrics["comm/up_bytes"] for r in other_engine.reports
    ]


def test_a_deadline_limits_the_extra_work() -> None:
    """Half a mean job: with partial work clients do fewer units than asked, and are charged for those."""
    run = run_without_files(*RUN, "client.epochs=4", "deadline=fixed", "deadline.k=0.5", "deadline.partial_work=true")
    flops = np.diff([report.metrics["comp/client_flops"] for report in run.reports])
    for t, cost in enumerate(flops):
        report = run.reports[t + 1]
        units_done = assigned_units(run, t)
        expected_work = np.where(units_done > 0, units_done, 0) @ run.info.n_train[report.cohort]
        late_clients = np.setdiff1d(report.cohort, report.arrived)
        if not len(late_clients):
            assert cost == pytest.approx(3 * FORWARD * expected_work)
        assert cost >= 3 * FORWARD * expected_work - 1
        assert (report.clients["finish_s"][report.arrived] <= 0.5 * run.info.expected_s.mean() + 1e-6).all()
        assert (units_done < 44).all()


def test_extra_work_is_limited_in_steps_too() -> None:
    """client.steps=6 with passes=1: no client does more steps than max(6, one pass)."""
    run = run_without_files(*RUN, "client.steps=6", "selector.passes=1", "client.batch=10", "device.lam=0")
    for t in range(3):
        n = run.info.n_train[run.reports[t + 1].cohort]
        assert (assigned_units(run, t) <= np.maximum(6, np.ceil(n / 10))).all()


def test_fewer_samples_take_less_time() -> None:
    run = run_without_files(*RUN, "samples=random", "samples.fraction=0.5")
    flops = np.diff([report.metrics["comp/client_flops"] for report in run.reports])
    for t, cost in enumerate(flops):
        used = np.ceil(0.5 * run.info.n_train[run.reports[t + 1].cohort] - 1e-9)
        assert cost == pytest.approx(3 * FORWARD * float(assigned_units(run, t) @ used))


def test_a_resumed_run_continues_identically(tmp_path: Path, plain: FinishedRun) -> None:
    run_training(tmp_path / "b", *RUN, "rounds=1")
    resumed = run_training(tmp_path / "b", *RUN, "resume=true")
    assert resumed.last.fingerprint == plain.last.fingerprint


@pytest.mark.parametrize("codec", ["quant", "subsample"])
def test_codecs_encode_only_the_transmitted_part(codec: str) -> None:
    """Fewer tensors make fewer bytes, also of those that a codec makes of them."""
    complete, partial = (
        run_without_files(*RUN, f"codec={codec}", f"selector.low={f}", f"selector.high={f}") for f in ("0", "0.8")
    )
    assert partial.last.metrics["comm/up_bytes"] < complete.last.metrics["comm/up_bytes"]
