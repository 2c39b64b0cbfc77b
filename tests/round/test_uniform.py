"""How far choices are from chance: closed forms, the expectations of uniform draws, and what runs report."""

from collections.abc import Callable

import numpy as np
import pytest

from fedcohort.data.skew import class_imbalance
from fedcohort.rng import Draws, new_generator
from fedcohort.round.uniform import UniformReference, draw_uniform_cohort
from fedcohort.types import Ids
from round_harness import run_without_files

K, M, T = 20, 5, 400
ALL_CLIENTS = np.arange(K)


def run_reference(choose: Callable[[int], Ids], rounds: int = T, seed: int = 0) -> tuple[UniformReference, np.ndarray]:
    """The record and the numbers of selections after `rounds` rounds of `choose`(round), with all clients available."""
    chance, counts = UniformReference.without_rounds(K), np.zeros(K, dtype=np.int64)
    for t in range(rounds):
        chosen = np.sort(choose(t))
        chance = chance.add_round(chosen, ALL_CLIENTS, draw_uniform_cohort(ALL_CLIENTS, len(chosen), Draws(seed, K, t)))
        counts[chosen] += 1
    return chance, counts


def test_the_reference_cohort_of_a_round_by_hand() -> None:
    """Two rounds of 2 of 4: {0, 1} with the reference {1, 2}, then {0, 1} with {0, 1} of the available {0, 1, 3}."""
    reference = UniformReference.without_rounds(4).add_round(np.array([0, 1]), np.arange(4), np.array([1, 2]))
    # c = (1, 1, 0, 0), e = (1/2, 1/2, 1/2, 1/2): 1/2 * 2 / 2; the twin's counts (0, 1, 1, 0) depart as far
    counts = np.array([1, 1, 0, 0])
    assert reference.metrics(counts) == {
        "select/uniform_overlap": 0.5,
        "select/uniform_overlap_mean": 0.5,
        "select/departure": 0.5,
        "select/departure_uniform": 0.5,
    }
    after_two = reference.add_round(np.array([0, 1]), np.array([0, 1, 3]), np.array([0, 1]))
    # c = (2, 2, 0, 0), e = (7/6, 7/6, 1/2, 7/6): 1/2 (5/6 + 5/6 + 1/2 + 7/6) / 4 = 5/12
    # the twin's c = (1, 2, 1, 0): 1/2 (1/6 + 5/6 + 1/2 + 7/6) / 4 = 1/3
    assert after_two.metrics(2 * counts) == pytest.approx(
        {
            "select/uniform_overlap": 1.0,
            "select/uniform_overlap_mean": 0.75,
            "select/departure": 5 / 12,
            "select/departure_uniform": 1 / 3,
        }
    )


def test_rounds_without_a_cohort_do_not_count() -> None:
    no_clients = np.empty(0, dtype=np.int64)
    assert (
        UniformReference.without_rounds(3)
        .add_round(no_clients, np.arange(3), no_clients)
        .metrics(np.zeros(3, dtype=np.int64))
        == {}
    )
    reference = UniformReference.without_rounds(3).add_round(np.array([2]), np.arange(3), np.array([2]))
    metrics = reference.add_round(no_clients, no_clients, no_clients).metrics(np.array([0, 0, 1]))
    assert "select/uniform_overlap" not in metrics
    assert metrics["select/uniform_overlap_mean"] == 1.0


@pytest.mark.parametrize("favourites", [True, False])
def test_the_expected_overlap_is_m_over_k_for_independent_selections(favourites: bool) -> None:
    """Hypergeometric: variance of a round's share (1 - m/K) (K - m) / (K (K - 1)) * K / m = .0296; 4 sd of the mean."""
    rng = new_generator(1, "test")
    chance, _ = run_reference(lambda t: np.arange(M) if favourites else rng.permutation(K)[:M])
    deviation = np.sqrt((M / K) * (1 - M / K) / M * (K - M) / (K - 1) / T)
    assert chance.overlaps / chance.rounds == pytest.approx(M / K, abs=4 * deviation)


def test_a_fixed_cohort_departs_by_one_minus_m_over_k() -> None:
    """c_k = T for m clients, e_k = T m / K for all: 1/2 (m T (1 - m/K) + (K - m) T m / K) / (T m)."""
    chance, counts = run_reference(lambda t: np.arange(M))
    metrics = chance.metrics(counts)
    assert metrics["select/departure"] == pytest.approx(1 - M / K)
    assert metrics["select/departure_uniform"] < 0.05


def test_round_robin_does_not_depart_from_uniform() -> None:
    chance, counts = run_reference(lambda t: (np.arange(M) + t * M) % K)
    assert chance.metrics(counts)["select/departure"] == pytest.approx(0.0, abs=1e-12)


def test_uniform_selection_departs_as_far_as_its_reference() -> None:
    """Mean |c - e| of a binomial-like count is sqrt(2/pi) of its sd; over 20 clients the two agree to a third."""
    rng = new_generator(2, "test")
    chance, counts = run_reference(lambda t: rng.permutation(K)[:M])
    metrics = chance.metrics(counts)
    expected = np.sqrt(2 / np.pi) * np.sqrt(T * (M / K) * (1 - M / K)) * K / (2 * T * M)
    assert metrics["select/departure"] == pytest.approx(expected, rel=0.5)
    assert metrics["select/departure_uniform"] == pytest.approx(expected, rel=0.5)


def test_full_participation_equals_its_reference() -> None:
    chance, counts = run_reference(lambda t: ALL_CLIENTS, rounds=3)
    assert chance.metrics(counts) == pytest.approx(
        {
            "select/uniform_overlap": 1.0,
            "select/uniform_overlap_mean": 1.0,
            "select/departure": 0.0,
            "select/departure_uniform": 0.0,
        }
    )


def test_the_reference_cohort_is_uniform_and_independent() -> None:
    draws = [draw_uniform_cohort(ALL_CLIENTS, M, Draws(3, K, t)) for t in range(2000)]
    assert all(len(np.unique(drawn)) == M for drawn in draws)
    counts = np.bincount(np.concatenate(draws), minlength=K)
    assert np.abs(counts - 500).max() < 4 * np.sqrt(500 * (1 - M / K))
    assert set(draw_uniform_cohort(ALL_CLIENTS, M, Draws(3, K, 7))) == set(draws[7])
    smaller_cohort = draw_uniform_cohort(np.setdiff1d(ALL_CLIENTS, draws[7][:1]), M - 1, Draws(3, K, 7))
    assert set(smaller_cohort) == set(draws[7][1:])  # who is away makes no other difference


def test_a_run_reports_its_departure_from_uniform() -> None:
    run = run_without_files("rounds=4", "availability=bernoulli", "availability.p=0.7")
    federation_ci = {"skew/global_ci", "skew/client_ci"}
    assert {name for name in run.reports[0].metrics if name.startswith("skew/")} == federation_ci
    assert not any(name.startswith("skew/") for report in run.reports[1:] for name in report.metrics)
    assert run.info.skew == {name[5:]: run.reports[0].metrics[name] for name in federation_ci}
    for report in run.reports[1:]:
        chance = Draws(0, 12, report.step - 1).uniform("uniform")
        available = np.flatnonzero(report.clients["available"])
        reference_cohort = available[np.argsort(chance[available])[: len(report.cohort)]]
        assert report.metrics["select/uniform_overlap"] == np.isin(report.cohort, reference_cohort).mean()
        assert 0 <= report.metrics["select/departure"] < 1


def test_the_cohorts_imbalance_is_that_of_the_pooled_data() -> None:
    overrides = ("partition=dominant_class", "partition.fraction=0.8", "partition.share=1", "label_noise=none")
    run = run_without_files(*overrides, "deadline=fixed", "deadline.k=0.8", "deadline.partial_work=false")
    assert run.info.skew["client_ci"] > 0.5
    assert {len(report.arrived) == len(report.cohort) for report in run.reports[1:]} == {False}
    for report in run.reports[1:]:
        counts = run.info.class_counts[report.arrived].sum(0)  # T and V: V is too small to matter much
        if len(report.arrived):
            assert report.metrics["select/class_imbalance"] == pytest.approx(class_imbalance(counts), abs=0.05)
        else:
            assert "select/class_imbalance" not in report.metrics


def test_drawing_from_a_large_population_equals_a_full_permutation() -> None:
    draws, available = Draws(3, 5000), np.arange(0, 5000, 2)
    noise = draws.uniform("uniform")[available]
    expected = available[np.argsort(noise)[:100]]
    assert np.sort(draw_uniform_cohort(available, 100, draws)).tolist() == np.sort(expected).tolist()
