from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fedcohort.dataset.synthetic import Synthetic
from fedcohort.errors import OptionError
from optional_values import not_none

DATASET = Synthetic(alpha=1.0, beta=1.0, clients=20, min_samples=50, max_samples=200)


def test_synthetic_data_have_60_features_and_a_test_tenth_per_client() -> None:
    raw = DATASET.load(0)
    assert raw.train_x.shape[1:] == raw.test_x.shape[1:] == (60,)
    assert raw.train_x.dtype == np.float32
    n_train, n_test = np.bincount(not_none(raw.train_owner)), np.bincount(not_none(raw.test_owner))
    assert len(n_train) == len(n_test) == 20
    np.testing.assert_array_equal(n_train, (n_train + n_test) * 9 // 10)
    assert ((n_train + n_test >= 50) & (n_train + n_test <= 200)).all()


def test_a_clients_data_do_not_depend_on_the_number_of_clients() -> None:
    few, many_clients = replace(DATASET, clients=3).load(4), DATASET.load(4)
    np.testing.assert_array_equal(few.train_x, many_clients.train_x[: len(few.train_x)])
    np.testing.assert_array_equal(few.train_y, many_clients.train_y[: len(few.train_y)])
    assert not np.array_equal(few.train_y, replace(DATASET, clients=3).load(5).train_y[: len(few.train_y)])


def test_client_sizes_are_lognormal() -> None:
    """The logarithm of the size beyond the least is N(4, 2), up to rounding down."""
    data = replace(DATASET, max_samples=None)
    n = np.array([len(data.draw_samples(np.random.default_rng(seed))[1]) for seed in range(400)]) - 50
    assert np.median(np.log(n + 0.5)) == pytest.approx(4, abs=4 * 2 * 1.2533 / 20)
    assert np.diff(np.quantile(np.log(n + 0.5), [0.25, 0.75]))[0] == pytest.approx(2 * 1.349, rel=0.25)


@pytest.mark.parametrize("beta", [0.0, 4.0])
def test_beta_is_the_variance_between_local_inputs(beta: float) -> None:
    """The mean of a client's 60 feature means is B_k plus noise of variance (1 + sum_j j^-1.2 / (60 n)) / 60."""
    data = replace(DATASET, beta=beta, max_samples=50)
    means = np.array([data.draw_samples(np.random.default_rng(seed))[0].mean() for seed in range(500)])
    variance = beta + 1 / 60
    assert means.var() == pytest.approx(variance, rel=5 * np.sqrt(2 / 500))


def test_inputs_have_the_printed_covariance() -> None:
    x, _ = Synthetic(1.0, 1.0, 1, 20_000, 20_000).draw_samples(np.random.default_rng(0))
    np.testing.assert_allclose(x.var(0), np.arange(1, 61) ** -1.2, rtol=5 * np.sqrt(2 / 20_000))
    assert np.abs(np.corrcoef(x.T) - np.eye(60)).max() < 5 / np.sqrt(20_000)


def test_labels_are_a_linear_function_of_the_inputs() -> None:
    """Softmax regression without regularisation separates one client's classes."""
    x, y = Synthetic(1.0, 1.0, 1, 400, 400).draw_samples(np.random.default_rng(1))
    assert len(np.unique(y)) >= 2
    assert LogisticRegression(C=1e6, max_iter=3000).fit(x, y).score(x, y) > 0.99


def test_alpha_shifts_all_logits_equally_and_changes_no_label() -> None:
    for seed in range(20):
        labels = [
            Synthetic(alpha, 1.0, 1, 50, 200).draw_samples(np.random.default_rng(seed))[1]
            for alpha in (0.0, 1.0, 100.0)
        ]
        np.testing.assert_array_equal(labels[0], labels[1])
        np.testing.assert_array_equal(labels[0], labels[2])


def test_clients_differ_in_their_labels() -> None:
    raw = DATASET.load(0)
    top = [np.bincount(raw.train_y[raw.train_owner == k], minlength=10).argmax() for k in range(20)]
    assert len(set(top)) >= 5


def test_max_samples_below_min_samples_is_rejected() -> None:
    with pytest.raises(OptionError, match=r"max_samples must be at least min_samples=50, or null, got 20$"):
        replace(DATASET, max_samples=20)
    assert replace(DATASET, max_samples=50).max_samples == 50


def test_a_missing_number_of_clients_names_the_option() -> None:
    with pytest.raises(OptionError, match=r"^clients must be an integer .* got null: this dataset has no .*clients=50"):
        replace(DATASET, clients=None)  # type: ignore[arg-type]
