"""OCS: probabilities by hand, an unbiased estimate, and the charge of rounds in which all train and some upload."""

from pathlib import Path

import numpy as np
import pytest

from config_options import make_component
from fedcohort.selector.ocs import aocs_probabilities, ocs_probabilities
from fedcohort.types import Population, ProbeResult
from round_harness import run_without_files
from run_harness import run_training
from selector_harness import make_context, make_outcome

THIRD = 1 / 3


@pytest.mark.parametrize(
    ("u", "m", "p"),
    [
        ((1, 2, 3, 10), 2, (1 / 6, 1 / 3, 1 / 2, 1)),
        ((1, 1, 1, 5, 6, 30), 4, (THIRD, THIRD, THIRD, 1, 1, 1)),
        ((5, 1, 1, 1, 1, 1), 3, (1, 0.4, 0.4, 0.4, 0.4, 0.4)),
        ((0, 1, 2, 8), 2, (0, THIRD, 2 * THIRD, 1)),
        ((0, 0, 0, 8), 2, (0, 0, 0, 1)),
        ((3, 3, 3, 3), 1, (0.25, 0.25, 0.25, 0.25)),
        ((0, 0, 0, 0), 3, (0.75, 0.75, 0.75, 0.75)),
        ((7, 0), 2, (1, 1)),
    ],
)
def test_optimal_probabilities_by_hand(u: tuple[float, ...], m: int, p: tuple[float, ...]) -> None:
    """Of 1, 2, 3 and 10, the last has 1, and the others share the sum of 1 that is left in proportion to 6.

    AOCS comes to the same. Of (1, 1, 1, 5, 6, 30) the first p are 4 u / 44. Then 4 - 1 places for 5 with a sum of 14/11
    give 3/14 for the first three. In the end 1 place is left for these.
    """
    np.testing.assert_allclose(ocs_probabilities(np.array(u, float), m), p)
    np.testing.assert_allclose(aocs_probabilities(np.array(u, float), m, 10), p)


def test_corrections_of_aocs_by_hand() -> None:
    u = np.array([1.0, 1, 1, 5, 6, 30])
    np.testing.assert_allclose(aocs_probabilities(u, 4, 0), [1 / 11] * 3 + [5 / 11, 6 / 11, 1])
    np.testing.assert_allclose(aocs_probabilities(u, 4, 1), [3 / 14] * 3 + [1, 1, 1])


def test_no_other_probabilities_have_less_variance() -> None:
    """sum u^2 (1 - p) / p is 22 for (1, 2, 3, 10) and m = 2. It is 114 at p = .5. Other p of this sum have more."""
    u, rng = np.array([1.0, 2, 3, 10]), np.random.default_rng(0)

    def variance(p: np.ndarray) -> float:
        return float((u**2 * (1 - p) / p).sum())

    best = ocs_probabilities(u, 2)
    assert variance(best) == pytest.approx(22)
    assert variance(np.full(4, 0.5)) == pytest.approx(114)
    for _ in range(20):
        perturbed = best + 0.05 * np.append(np.diff(rng.random(4), append=0.0)[:3], 0.0)
        perturbed[:3] += (1 - perturbed[:3].sum()) / 3
        assert variance(perturbed) >= variance(best)


@pytest.mark.parametrize("form", ["exact", "approximate"])
def test_draws_are_independent_and_the_estimate_is_unbiased(form: str) -> None:
    """Norms 1, 2, 3, 10 under equal shares: clients are drawn with p_i, and weigh (1/4) / p_i where they are."""
    selector, p = make_component("selector", "ocs", form=form), np.array([1 / 6, 1 / 3, 1 / 2, 1])
    answers = {"trained_norm": ProbeResult(np.arange(4), np.array([1.0, 2, 3, 10]))}
    counts, sizes, n_rounds = np.zeros(4), np.zeros(5), 2000
    for seed in range(n_rounds):
        ctx = make_context(n_clients=4, signals={"n_train": np.full(4, 7)}, seed=seed)
        selection, state = selector.select(selector.init(Population(4, 2, 2, {})), ctx, answers)
        np.testing.assert_allclose(state.weights, 0.25 / p)
        counts[selection.clients] += 1
        sizes[len(selection.clients)] += 1
        assert selection.uncapped == (len(selection.clients) > 2)
    np.testing.assert_allclose(counts / n_rounds, p, atol=0.05)
    np.testing.assert_allclose(sizes[[1, 4]] / n_rounds, [5 / 18, 1 / 36], atol=0.03)
    advice, _ = selector.observe(state, make_outcome(0, [1, 3]))
    assert advice.absolute
    assert advice.weights.tolist() == pytest.approx([0.75, 0.25])


def test_shares_weigh_norms_and_a_cohort_is_never_empty() -> None:
    """w ||U|| of 1/4 x 3 and 3/4 x 1 are equal; with one place, both stay out in a quarter of the rounds."""
    selector = make_component("selector", "ocs")
    answers = {"trained_norm": ProbeResult(np.array([0, 2]), np.array([3.0, 1.0]))}
    ctx = make_context(cohort=1, n_clients=3, available=[0, 2], signals={"n_train": np.array([1, 50, 3])})
    assert selector.plan(None, ctx)[0].clients.tolist() == [0, 2]
    for seed in range(20):
        ctx = make_context(
            cohort=1, n_clients=3, available=[0, 2], signals={"n_train": np.array([1, 50, 3])}, seed=seed
        )
        selection, _ = selector.select(selector.init(Population(3, 2, 1, {})), ctx, answers)
        assert selection.probability.tolist() == [0.5, 0, 0.5]
        assert len(selection.clients) >= 1


def test_all_train_and_some_upload() -> None:
    """A round costs the FLOPs, the downloads and the training time of full participation, and the uploads of a few.

    A model has 650 parameters; each client sends a norm, and the numbers of samples once. Links take no time.
    """
    device = ("device=shifted_exponential", "device.lam=0", "rounds=2", "partition=dirichlet")
    ocs, full = (run_without_files(*device, f"selector={s}", "cohort=4") for s in ("ocs", "full"))
    for name in ("comp/client_flops", "comm/down_bytes", "time/virtual_s"):
        assert [r.metrics[name] for r in ocs.reports] == pytest.approx([r.metrics[name] for r in full.reports]), name
    uploaded_bytes = [r.metrics["comm/up_bytes"] for r in ocs.reports]
    assert np.diff(uploaded_bytes).tolist() == [4 * 12 + 4 * 650 * len(report.cohort) for report in ocs.reports[1:]]
    assert 0 < len(ocs.last.cohort) < 12


def test_the_norms_are_those_of_the_updates_that_are_sent(tmp_path: Path) -> None:
    """All clients train from w_0 in round 1, and PyramidFL reads the norms of their updates after it."""
    plain = ("selector.overcommit=1", "selector.beta=0", "selector.low=0", "selector.high=0")
    ocs, later = (
        run_training(tmp_path / choice, f"selector={choice}", *options, "cohort=12", "rounds=1").last
        for choice, options in (("ocs", ()), ("pyramidfl", plain))
    )
    np.testing.assert_allclose(ocs.clients["signal_trained_norm"], later.clients["signal_update_norm"], rtol=1e-4)
    assert ocs.metrics["test/loss"] == pytest.approx(later.metrics["test/loss"], rel=1e-5)
