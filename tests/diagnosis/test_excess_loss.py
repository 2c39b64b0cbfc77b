"""Excess losses and rates: a worked example, and what changes nothing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from excess_loss_example import COUNTS, LOSSES
from fedcohort.diagnosis.excess_loss import ClassLosses, ExcessLoss, fit_by_class, fit_by_sums

Fit = Callable[[ClassLosses], ExcessLoss]
each_fit = pytest.mark.parametrize("fit", [fit_by_class, fit_by_sums])


def test_rates_and_deviations_of_a_worked_example() -> None:
    """Clients 3 and 5 have a loss of some 1.9 nats more in both classes; numbers of an independent implementation."""
    fit = fit_by_class(LOSSES)
    np.testing.assert_allclose(fit.class_effect, [1.1474, 1.6193], atol=5e-5)
    np.testing.assert_allclose(fit.excess, [-0.6543, -0.6612, -0.5134, 1.1773, -0.6210, 1.2726], atol=5e-5)
    np.testing.assert_allclose(fit.noise_rate, [0.0013, -0.0013, 0.0520, 0.6614, 0.0132, 0.6958], atol=5e-5)
    assert fit.nats_per_wrong_label == pytest.approx(2.7744, abs=5e-5)
    assert fit.excess_deviation / fit.nats_per_wrong_label == pytest.approx(0.3486, abs=5e-5)


def test_secure_sums_of_the_same_reports_give_the_same_rates_to_a_hundredth() -> None:
    np.testing.assert_allclose(fit_by_sums(LOSSES).noise_rate, fit_by_class(LOSSES).noise_rate, atol=0.01)


@each_fit
def test_a_class_with_higher_losses_is_not_estimated_as_noise(fit: Fit) -> None:
    """All losses of class 1, and those of other labels in proportion, grow by .7 nats: b and r stay."""
    class_shifts = np.array([0.0, 0.7])
    harder = ClassLosses(
        COUNTS,
        LOSSES.loss_sums + COUNTS * class_shifts,
        LOSSES.squared_loss_sums + 2 * class_shifts * LOSSES.loss_sums + COUNTS * class_shifts**2,
        LOSSES.other_label_loss_sums + 0.7 * COUNTS[:, 1],
    )
    np.testing.assert_allclose(fit(harder).excess, fit(LOSSES).excess, atol=2e-3)
    np.testing.assert_allclose(fit(harder).noise_rate, fit(LOSSES).noise_rate, atol=2e-3)


@each_fit
def test_scaled_losses_give_the_same_noise_rates(fit: Fit) -> None:
    doubled = ClassLosses(COUNTS, 2 * LOSSES.loss_sums, 4 * LOSSES.squared_loss_sums, 2 * LOSSES.other_label_loss_sums)
    np.testing.assert_allclose(fit(doubled).noise_rate, fit(LOSSES).noise_rate, atol=1e-3)


@each_fit
def test_relabelled_clients_and_classes_get_relabelled_estimates(fit: Fit) -> None:
    clients, classes = np.array([4, 0, 5, 2, 3, 1]), np.array([1, 0])
    counts, sums, squares = (
        table[clients][:, classes] for table in (COUNTS, LOSSES.loss_sums, LOSSES.squared_loss_sums)
    )
    relabelled = fit(ClassLosses(counts, sums, squares, LOSSES.other_label_loss_sums[clients]))
    np.testing.assert_allclose(relabelled.excess, fit(LOSSES).excess[clients], atol=1e-9)
    np.testing.assert_allclose(relabelled.class_effect, fit(LOSSES).class_effect[classes], atol=1e-9)


def test_the_noise_of_a_class_that_one_client_holds_is_not_identified() -> None:
    counts, means = np.diag([10.0] * 4), np.array([0.2, 1, 2, 3])[:, None]
    own_classes = ClassLosses(counts, counts * means, counts * (means**2 + 0.2), np.full(4, 40.0))
    np.testing.assert_allclose(fit_by_class(own_classes).excess, 0.0, atol=1e-6)


@each_fit
def test_a_client_without_samples_has_no_excess(fit: Fit) -> None:
    empty = np.zeros((1, 2))
    counts, sums, squares = (
        np.concatenate([table, empty]) for table in (COUNTS, LOSSES.loss_sums, LOSSES.squared_loss_sums)
    )
    estimate = fit(ClassLosses(counts, sums, squares, np.append(LOSSES.other_label_loss_sums, 0.0)))
    assert estimate.excess[6] == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(estimate.noise_rate).all()


@each_fit
@pytest.mark.parametrize("n_clients", [1, 2])
def test_few_clients_and_an_empty_class_are_no_error(fit: Fit, n_clients: int) -> None:
    rows = slice(0, n_clients)
    few = replace(
        LOSSES,
        class_counts=np.hstack([COUNTS, np.zeros((6, 1))])[rows],
        loss_sums=np.hstack([LOSSES.loss_sums, np.zeros((6, 1))])[rows],
        squared_loss_sums=np.hstack([LOSSES.squared_loss_sums, np.zeros((6, 1))])[rows],
        other_label_loss_sums=LOSSES.other_label_loss_sums[rows],
    )
    assert np.isfinite(fit(few).excess).all()


def test_reports_are_read_from_rows() -> None:
    rows = np.hstack([COUNTS, LOSSES.loss_sums, LOSSES.squared_loss_sums, LOSSES.other_label_loss_sums[:, None]])
    losses = ClassLosses.from_rows(rows)
    np.testing.assert_array_equal(losses.squared_loss_sums, LOSSES.squared_loss_sums)
    np.testing.assert_array_equal(losses.other_label_loss_sums, LOSSES.other_label_loss_sums)
    np.testing.assert_array_equal(losses.n_samples, np.full(6, 10.0))
