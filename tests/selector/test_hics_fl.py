"""HiCS-FL: entropies, distances and probabilities by hand, clusters, and the slice of an update that it reads."""

import numpy as np
import pytest

from config_options import make_component
from fedcohort.errors import OptionError
from fedcohort.selector.hics_fl import (
    client_distances,
    cluster_probabilities,
    draw_by_cluster,
    softmax_entropy,
)
from fedcohort.types import Population
from round_harness import run_without_files
from selector_harness import make_context, make_outcome

WEIGHTS = np.array([[0.002, 0.002], [0.0, 0.0], [-0.001, -0.001]])  # update of the layer of three classes
BIASES = np.array([0.002, 0.0, -0.001])


def test_entropies_by_hand() -> None:
    """Logits 2, 0, -1 at a temperature of .001: shares e^2, 1, 1/e of their sum; equal shares have ln 3."""
    shares = np.exp([2, 0, -1]) / np.exp([2, 0, -1]).sum()
    entropy = softmax_entropy(np.array([BIASES / 0.001, BIASES, 0 * BIASES, 1e6 * BIASES]))
    np.testing.assert_allclose(entropy, [-(shares * np.log(shares)).sum(), 1.09861151, np.log(3), 0], atol=1e-8)
    np.testing.assert_allclose(entropy[0], 0.52426662, atol=1e-8)


def test_distances_by_hand() -> None:
    """Angles of 45, 90 and 45 degrees and 10 |H_i - H_j| = 5, 1, 4; a vector of 0 has an angle of 0 to all others."""
    vectors = np.array([[1.0, 0.0], [0.5**0.5, 0.5**0.5], [0.0, 1.0], [0.0, 0.0]])
    D = client_distances(vectors, np.array([0.5, 1.0, 0.6, 0.6]), 10.0)
    np.testing.assert_allclose([D[0, 1], D[0, 2], D[1, 2]], [5.78539816, 2.57079633, 4.78539816], atol=1e-8)
    np.testing.assert_allclose(D[3], [1, 4, 0, 0], atol=1e-12)
    np.testing.assert_array_equal(np.diag(D), 0)


@pytest.mark.parametrize(
    ("round", "expected"), [(0, [0.11920292, 0.88079708]), (10, [0.14185106, 0.85814894]), (100, [0.5, 0.5])]
)
def test_clusters_become_equally_probable(round: int, expected: list[float]) -> None:
    """exp(4 (1 - t / 100) .5) against exp(4 (1 - t / 100)): the logistic function of 2 (1 - t / 100)."""
    np.testing.assert_allclose(cluster_probabilities(np.array([0.5, 1.0]), 4.0, round, 100), expected, atol=1e-8)
    np.testing.assert_array_equal(cluster_probabilities(np.array([0.5, 1.0]), 4.0, 300, 100), 0.5)


def test_clusters_are_as_many_as_places_of_the_run_where_one_client_is_selected() -> None:
    """Clients 0 to 3 have balanced updates, client 4 one of a single class: half of the draws, of two clusters."""
    selector = make_component("selector", "hics_fl", gamma=0.0)
    state = selector.init(Population(5, 3, 2, {}))
    layers = [np.zeros(9 + 3)] * 4 + [np.append(np.zeros(9), [1.0, 0.0, 0.0])]
    state = selector.observe(state, make_outcome(0, range(5), output_layer=layers))[1]
    drawn = [selector.select(state, make_context(1, 1, 5, seed=seed), {})[0].clients[0] for seed in range(400)]
    assert abs(drawn.count(4) - 200) < 4 * np.sqrt(400 / 4)


def test_a_cluster_without_clients_left_is_not_drawn() -> None:
    labels, rng = np.array([0, 0, 1, 1, 1]), np.random.default_rng(0)
    assert draw_by_cluster(np.array([1.0, 0.0]), labels, 3, rng)[:2].tolist() == [0, 1]
    drawn = np.array([draw_by_cluster(np.array([0.2, 0.8]), labels, 1, rng)[0] for _ in range(2000)])
    np.testing.assert_allclose(np.bincount(drawn) / 2000, [0.1, 0.1, 0.8 / 3, 0.8 / 3, 0.8 / 3], atol=0.04)


@pytest.mark.parametrize("source", ["bias", "layer"])
def test_the_entropy_is_of_biases_or_of_mean_weights(source: str) -> None:
    selector = make_component("selector", "hics_fl", source=source)
    layer = np.concatenate([WEIGHTS.ravel(), 3 * BIASES])
    state = selector.init(Population(3, 3, 2, {}))
    np.testing.assert_allclose(state.entropy, np.log(3))
    _, state = selector.observe(state, make_outcome(0, [0, 2], output_layer=[layer, layer * np.nan]))
    expected = 0.52426662 if source == "layer" else softmax_entropy(3 * BIASES[None] / 0.001)[0]
    np.testing.assert_allclose(state.entropy, [expected, np.log(3), np.log(3)], atol=1e-8)
    assert np.linalg.norm(state.vectors, axis=1).tolist() == pytest.approx([1, 0, 0])
    assert state.vectors.shape == (3, 3 if source == "bias" else 9)
    assert state.has_trained.tolist() == [True, False, True]


def test_new_clients_come_first_and_then_clusters_by_entropy() -> None:
    """Of four clients with one class and two with equal classes, gamma = 100 draws the latter."""
    selector = make_component("selector", "hics_fl", gamma=100.0, clusters=2)
    state = selector.init(Population(6, 2, 4, {}))
    first, _ = selector.select(state, make_context(cohort=4, n_clients=6), {})
    assert len(first.clients) == 4
    biases = [[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1e-6, 1e-6], [1e-6, 1e-6]]
    layers = np.column_stack([biases, biases]).tolist()
    _, state = selector.observe(state, make_outcome(0, [0, 1, 2, 3], output_layer=layers[:4]))
    second, _ = selector.select(state, make_context(round=1, cohort=4, n_clients=6), {})
    assert {4, 5} < set(second.clients.tolist())
    _, state = selector.observe(state, make_outcome(1, [4, 5], output_layer=layers[4:]))
    assert len(set(selector.cluster_clients(state, np.arange(6), 2).tolist())) == 2
    third, _ = selector.select(state, make_context(round=2, cohort=2, n_clients=6), {})
    assert third.clients.tolist() == [4, 5]
    np.testing.assert_allclose(third.score_terms["entropy"], [0, 0, 0, 0, np.log(2), np.log(2)], atol=1e-9)
    single, _ = selector.select(state, make_context(round=2, cohort=2, n_clients=6, available=[3]), {})
    assert single.clients.tolist() == [3]


def test_a_run_reads_the_last_layer() -> None:
    """With logistic regression the output layer is the model: 64 x 10 weights and 10 biases."""
    run = run_without_files("selector=hics_fl", "selector.temperature=1", "rounds=3", "cohort=6")
    assert ((run.last.clients["part_entropy"] > 2) & (run.last.clients["part_entropy"] <= np.log(10))).all()
    assert run.last.metrics["comm/probe_bytes"] == 0


def test_a_population_above_the_limit_is_rejected() -> None:
    with pytest.raises(OptionError, match="limit must be an integer of at least 11"):
        make_component("selector", "hics_fl", limit=10).init(Population(11, 2, 2, {}))


def test_memory_is_that_of_matrices_of_distances() -> None:
    assert make_component("selector", "hics_fl").memory_bytes(10, 100) == 24 * 100
