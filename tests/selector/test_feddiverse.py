"""FedDiverse: the three steps by hand, the rotation, the rounds with queries, and the ablations."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from case_loop import for_all
from config_options import load_options
from fedcohort.errors import IncompatibleConfig
from fedcohort.selector.base import draw
from fedcohort.selector.feddiverse import (
    FedDiverse,
    State,
    draw_one_client,
    draw_probabilities,
    has_no_attribute_information,
    normalise_triplets,
)
from fedcohort.signal.base import find_oracle_signals
from fedcohort.types import Population, ProbeResult, RoundContext
from round_harness import run_without_files
from selector_harness import World, ids, make_context, play_rounds

DELTA = np.array(
    [[0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [0.1, 0.82, 0.08], [0.3, 0.3, 0.2], [0.05, 0.05, 0.4], [0.0, 0.0, 0.0]]
)
ALL_CLIENTS = np.ones(6, bool)
NAN = float("nan")


def make(**options: Any) -> FedDiverse:
    defaults = {k: v for k, v in load_options("selector", "feddiverse").items() if k != "_target_"}
    return FedDiverse(**(defaults | {"tie": "id"} | options))


class Dice:
    """A generator whose single draws are given, and whose vectors are zeros."""

    def __init__(self, *singles: float) -> None:
        self.singles = list(singles)

    def random(self, size: int | None = None) -> Any:
        return self.singles.pop(0) if size is None else np.zeros(size)


def order(selector: FedDiverse, delta: np.ndarray, m: int, *u: float, turn: int = 0) -> list[int]:
    K = len(delta)
    ctx = RoundContext(1, m, K, np.arange(K), {}, Dice(*u))  # type: ignore[arg-type]
    return selector.choose_cohort_in_order(delta, np.ones(K, bool), ctx, turn)


def state(delta: np.ndarray, turn: int = 0) -> State:
    return State(delta, np.ones(len(delta), bool), turn, np.zeros(len(delta)))


def test_the_first_client_is_drawn_by_its_spurious_correlation() -> None:
    """.8 of 1.58, and so on; u is where the running sum is cut."""
    p = draw_probabilities(DELTA[:, 2], ALL_CLIENTS, np.arange(6))
    np.testing.assert_allclose(p, [0.506329, 0.063291, 0.050633, 0.126582, 0.253165, 0], atol=1e-6)
    assert [draw_one_client(p, u) for u in (0.0, 0.5, 0.51, 0.6, 0.7, 0.999999)] == [0, 0, 1, 2, 3, 4]


def test_the_second_and_third_client_complement_the_first() -> None:
    """Dot products with client 0 are .66 .17 .156 .275 .66 .3333: client 2 is least aligned.

    The cross product of the two is (-.648, .072, .072): signed, the best of the rest is 4 at 0, a copy of client 0; by
    its size, 1 at .432.
    """
    D = normalise_triplets(DELTA)
    np.testing.assert_allclose(D @ D[0], [0.66, 0.17, 0.156, 0.275, 0.66, 1 / 3], atol=1e-6)
    cross = np.cross(D[0], D[2])
    np.testing.assert_allclose(cross, [-0.648, 0.072, 0.072], atol=1e-9)
    np.testing.assert_allclose((D @ cross)[[1, 3, 4, 5]], [-0.432, -0.198, 0, -0.168], atol=1e-9)
    assert order(make(), DELTA, 3, 0.0) == [0, 2, 4]
    assert order(make(cross="abs"), DELTA, 3, 0.0) == [0, 2, 1]


@pytest.mark.parametrize(
    ("cross", "m", "u", "expected"),
    [
        ("signed", 6, (0.0, 0.5), [0, 2, 4, 1, 5, 3]),
        ("abs", 6, (0.0, 0.5), [0, 2, 1, 3, 4, 5]),
        ("signed", 5, (0.6, 0.5), [2, 0, 1, 3, 4]),
        ("abs", 5, (0.6, 0.5), [2, 0, 1, 3, 4]),
    ],
)
def test_whole_cohorts_by_hand(cross: str, m: int, u: tuple[float, ...], expected: list[int]) -> None:
    assert order(make(cross=cross), DELTA, m, *u) == expected


def test_the_sixth_client_complements_the_fourth_and_fifth() -> None:
    """The third step within its group of three: the largest |cross product of the two before it, times its triplet|."""
    draws = np.random.default_rng(0)
    for _ in range(20):
        delta = draws.random((9, 3))
        chosen = order(make(cross="abs"), delta, 6, 0.3, 0.6)
        D, candidates = normalise_triplets(delta), [k for k in range(9) if k not in chosen[:5]]
        products = np.abs(D @ np.cross(D[chosen[3]], D[chosen[4]]))
        assert chosen[5] == candidates[int(products[candidates].argmax())]


def test_the_second_triple_starts_from_the_class_imbalance() -> None:
    """u = .5 among clients 1, 3, 4, 5 is 4 by SC (.1 .2 .4 0) and 1 by CI (.7 .3 .05 0)."""
    candidates = np.array([1, 3, 4, 5])
    assert draw_one_client(draw_probabilities(DELTA[:, 2], ALL_CLIENTS, candidates), 0.5) == 4
    assert draw_one_client(draw_probabilities(DELTA[:, 0], ALL_CLIENTS, candidates), 0.5) == 1
    assert order(make(), DELTA, 4, 0.0, 0.5)[3] == 1


def test_the_second_step_divides_by_each_clients_own_sum() -> None:
    """Raw dot products with client 0 would prefer the small client 1 (.084 to .17); normalised it is 2 (.17 to .6)."""
    delta = np.array([[0.1, 0.1, 0.8], [0.02, 0.02, 0.1], [0.6, 0.3, 0.1]])
    assert order(make(), delta, 2, 0.0) == [0, 2]


def test_equal_dot_products_are_ties_despite_rounding() -> None:
    """.1 .7 + .1 .2 + .8 .1 = .1 .1 + .1 .8 + .8 .1 = .17, but the first comes out a last bit larger."""
    delta = np.array([[0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert order(make(), delta, 2, 0.0) == [0, 1]


def test_without_spurious_correlation_the_draw_is_uniform() -> None:
    delta = DELTA * [1, 1, 0]
    np.testing.assert_array_equal(draw_probabilities(delta[:, 2], ALL_CLIENTS, np.arange(6)), np.full(6, 1 / 6))
    assert [order(make(), delta, 1, u)[0] for u in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)] == [0, 1, 2, 3, 4, 5]


def test_a_balanced_client_is_three_thirds() -> None:
    np.testing.assert_allclose(normalise_triplets(DELTA)[5], [1 / 3] * 3)


def test_the_rotation_restarts_unless_it_persists() -> None:
    """A cohort of 6 is two groups: the next round starts at CI again, or at AI with persist_rotation."""
    ctx = make_context(3, 6, 6)
    for persists, column in ((False, 2), (True, 1)):
        selector = make(persist_rotation=persists)
        _, after = selector.select(state(DELTA), ctx, {})
        assert after.n_triples == 2
        np.testing.assert_array_equal(selector.select(after, ctx, {})[0].scores, DELTA[:, column])


@for_all("turn", range(8))
def test_the_rotation_has_three_turns(turn: int) -> None:
    """SC, CI, AI, and SC again at the fourth turn: half of the running sums of .8, .1 .8, and .1 .3 1.12."""
    column, first = (2, 0, 1)[turn % 3], (0, 1, 2)[turn % 3]
    assert order(make(), DELTA, 1, 0.5, turn=turn) == [first]
    selector = make(persist_rotation=True)
    selection, after = selector.select(state(DELTA, turn), make_context(3, 4, 6), {})
    np.testing.assert_array_equal(selection.scores, DELTA[:, column])
    assert after.n_triples == turn + 2


def test_the_fourth_group_of_a_cohort_starts_from_the_first_turn_again() -> None:
    """Twelve clients are four groups, whose firsts are drawn by SC, CI, AI and SC of the clients that are left."""
    delta = np.concatenate([DELTA, DELTA[::-1]])
    chosen = order(make(), delta, 12, *[0.5] * 4)
    for group, column in enumerate((2, 0, 1, 2)):
        candidates = np.setdiff1d(np.arange(12), chosen[: 3 * group])
        assert chosen[3 * group] == draw_one_client(
            draw_probabilities(delta[:, column], np.ones(12, bool), candidates), 0.5
        )


def test_unknown_clients_come_last() -> None:
    delta = DELTA.copy()
    delta[[1, 2]] = NAN
    for seed in range(30):
        ctx = make_context(3, 4, 6, seed=seed)
        assert make(tie="random").select(state(delta), ctx, {})[0].clients.tolist() == [0, 3, 4, 5]


def test_pre_training_selects_at_random_without_queries() -> None:
    world = World(cohort=4)
    steps = play_rounds(make(pretrain=3), world, 5)
    assert [len(step.probes) for step in steps] == [0, 0, 0, 1, 0]
    for step in steps[:3]:
        ctx = world.context(step.ctx.round, frozenset({"dht"}))
        assert step.selection.clients.tolist() == draw(np.ones(12), ctx.available, 4, ctx.rng).tolist()
    probe = steps[3].probes[0]
    assert probe.clients.tolist() == list(range(12))
    assert not probe.concurrent
    assert {"q": 0.7, "epochs": 5, "lr": 0.1, "batch": 10}.items() <= probe.options.items()


def test_unavailable_clients_are_queried_later_and_only_once() -> None:
    world = World(available=lambda t: [0, 1, 2] if t < 3 else range(t))
    queried_ids = [[p.clients.tolist() for p in step.probes] for step in play_rounds(make(), world, 6)]
    assert queried_ids == [[], [[0, 1, 2]], [], [], [[3]], [[4]]]
    nan_world = World(corrupt=lambda signal, values: np.full_like(values, np.nan))
    assert [len(step.probes) for step in play_rounds(make(), nan_world, 4)] == [0, 1, 0, 0]


def test_triplets_from_outside_the_unit_interval_are_clipped() -> None:
    answers = {"dht": ProbeResult(ids(0, 1, 2), np.array([[-1.0, 0.5, 1e300], [0.1, 0.2, 0.3], [NAN, 0, 0]]))}
    _, after = make().select(make().init(Population(3, 2, 2, {})), make_context(1, 2, 3), answers)
    np.testing.assert_array_equal(after.delta, [[0, 0.5, 1], [0.1, 0.2, 0.3], [NAN] * 3])


GROUPS = np.array([[30, 10, 10, 30], [10, 30, 30, 10], [50, 0, 0, 0], [40, 10, 10, 40]])


def make_oracle(source: str, counts: np.ndarray = GROUPS) -> tuple[FedDiverse, State]:
    selector = make(source=source)
    assert selector.needs == {"group_counts"}
    return selector, selector.init(Population(len(counts), 2, 2, {"group_counts": counts}))


def test_oracle_triplets_come_from_the_true_matrices() -> None:
    """[[40,10],[10,40]] is (0, 0, .278072), [[50,0],[0,0]] is (1, 1, 0)."""
    selector, start = make_oracle("known_dht")
    np.testing.assert_allclose(start.delta[[2, 3]], [[1.0, 1.0, 0.0], [0.0, 0.0, 0.278072]], atol=1e-6)
    assert selector.plan(start, make_context(1, 2, 4)) == ()
    chosen = selector.select(start, make_context(1, 3, 4), {})[0]
    assert 2 in chosen.clients, "the only one with imbalances complements any other"


def test_oracle_matrices_score_clients_by_the_balance_of_the_mixture() -> None:
    """The first two of three cancel out, half each (see the mixture of least variance); the third fills up."""
    selector, start = make_oracle("known_matrix", GROUPS[:3])
    np.testing.assert_allclose(start.draw_weights, [0.5, 0.5, 0], atol=1e-6)
    for t in range(1, 30):
        assert selector.select(start, make_context(t, 2, 3), {})[0].clients.tolist() == [0, 1]
    assert selector.select(start, make_context(1, 3, 3), {})[0].clients.tolist() == [0, 1, 2]
    assert selector.select(start, make_context(1, 2, 3, available=[2]), {})[0].clients.tolist() == [2]


@pytest.mark.parametrize("source", ["known_dht", "known_matrix"])
def test_the_ablations_read_only_the_matrices(source: str) -> None:
    world = World()
    for step in play_rounds(make(source=source), world, 5):
        assert len(step.selection.clients) == 3
        assert not step.probes
    assert world.read_signals == {"group_counts"}


def test_the_ablations_are_oracles_and_the_method_is_not() -> None:
    assert find_oracle_signals(make().needs) == []
    assert all(find_oracle_signals(make(source=s).needs) == ["group_counts"] for s in ("known_dht", "known_matrix"))


def test_estimates_without_attribute_information_give_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pivot classes all triplets are (CI, 1, 0); two such clients of four are not a majority."""
    blind = np.array([[0.1, 1.0, 0.0], [0.6, 1.0, 0.0], [0.1, 0.9, 0.3], [0.1, 0.2, 0.0]])
    selector, lines = make(pretrain=0), list[str]()
    monkeypatch.setattr(logging.getLogger("fedcohort"), "warning", lambda text, *args: lines.append(text % args))
    for rows, expected in (([0, 1, 2, 3], 0), ([0, 1, 2], 1)):
        ctx = RoundContext(1, 2, len(rows), np.arange(len(rows)), {}, np.random.default_rng(0))
        start = State(np.full((len(rows), 3), NAN), np.zeros(len(rows), bool), 0, np.zeros(len(rows)))
        selector.select(start, ctx, {"dht": ProbeResult(np.arange(len(rows)), blind[rows])})
        assert len(lines) == expected
    assert lines[0].startswith("selector=feddiverse: the estimates of 2 of 3 clients hold no information on attributes")
    assert has_no_attribute_information(blind).tolist() == [True, True, False, False]


LATE_UPDATES = (("deadline=buffered",), ("deadline=fixed", "deadline.k=0.8", "deadline.late_updates=carry"))


@pytest.mark.parametrize("deadline_options", LATE_UPDATES)
@pytest.mark.parametrize("source", ["known_dht", "known_matrix"])
def test_late_updates_need_pretrain_0(source: str, deadline_options: tuple[str, ...], tmp_path: Path) -> None:
    """A job of a pre-training round, which is plain FedAvg, could arrive in a round of the run's aggregator."""
    for part, n_rows in (("train", 600), ("test", 60)):
        rows = [np.full(784, i % 251 + 1, np.uint8) for i in range(n_rows)]
        table = pyarrow.table({"image": rows, "label": [i % 10 for i in range(n_rows)]})
        pyarrow.parquet.write_table(table, tmp_path / f"{part}.parquet")
    overrides: tuple[str, ...] = (
        "dataset=cmnist",
        f"dataset.path={tmp_path}",
        "split.limit=240",
        "client.epochs=1",
        "rounds=3",
    )
    overrides = (*overrides, "clients=8", "cohort=3", "agg=scaffold", "selector=feddiverse", *deadline_options)
    overrides = (*overrides, "device=shifted_exponential", f"selector.source={source}")
    with pytest.raises(IncompatibleConfig, match=r"selector\.pretrain=0"):
        run_without_files(*overrides, "selector.pretrain=1")
    assert run_without_files(*overrides, "selector.pretrain=0").last.step == 3
