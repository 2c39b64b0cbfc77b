"""FedDF's closed forms."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from agg_harness import Score, collect_updates, make_arrived, make_round_models, make_update, server_only
from config_options import make_component
from fedcohort.agg.base import Arrived
from fedcohort.agg.feddf import FedDf
from fedcohort.data.federation import ServerSamples
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import FlatModel
from fedcohort.maths.distil import distillation_loss, predict_logits
from fedcohort.round.server_models import RoundModels
from optional_values import not_none
from round_harness import run_without_files
from run_harness import run_training, same_bits

ONE_INPUT = torch.ones(1, 1, dtype=torch.float64)


def arrivals(agg: FedDf, deltas: list[list[float]], round_models: RoundModels | None = None, **fields: Any) -> Arrived:
    updates = [make_update(k, delta, n=fields.get("n", [1] * len(deltas))[k]) for k, delta in enumerate(deltas)]
    return make_arrived(collect_updates(agg, updates), round_models=round_models)


def teachers(agg: FedDf, deltas: list[list[float]], x: Tensor = ONE_INPUT) -> list[float]:
    t = agg._predict_with_teachers(arrivals(agg, deltas), x)
    assert t is not None
    return t[0].tolist()


@pytest.mark.parametrize(("tau", "expected"), [(1.0, 0.75), (2.0, 0.6339745962)])
def test_teachers_average_logits(tau: float, expected: float) -> None:
    # Logits (ln 9, 0) and (0, 0): softmax of (ln 3, 0) is (3/4, 1/4); averaged probabilities would be (.7, .3).
    # At tau = 2: sqrt(3) / (1 + sqrt(3)).
    assert teachers(make_component("agg", "feddf", tau=tau), [[math.log(9)], [0.0]]) == pytest.approx(
        [expected, 1 - expected], abs=1e-9
    )


def test_the_divergence_is_from_teachers_to_student() -> None:
    # KL((3/4, 1/4) || uniform) = .1308; the other way round it is .1438. Its logit gradient is s - t.
    t, logits = torch.tensor([[0.75, 0.25]], dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64)
    loss = distillation_loss(t, logits.requires_grad_())
    assert float(loss.detach()) == pytest.approx(0.1308120359, abs=1e-9)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient[0].tolist() == pytest.approx([-0.25, 0.25], abs=1e-12)


def test_without_distillation_steps_feddf_equals_fedavg() -> None:
    agg, deltas = make_component("agg", "feddf", steps=0), [[4.0, 0.0], [0.0, 4.0]]
    direction, _ = agg.direction(None, arrivals(agg, deltas, n=[1, 3]))
    assert direction.displacement.tolist() == [1.0, 3.0]


def test_a_linear_model_of_equal_clients_equals_its_ensemble() -> None:
    # The mean of the logits x . w_i is x . (mean of w_i): nothing to learn, nothing moves.
    agg = make_component("agg", "feddf")
    direction, _ = agg.direction(None, arrivals(agg, [[4.0, -1.0, 0.0], [0.0, 3.0, 5.0], [2.0, 1.0, 1.0]]))
    assert direction.displacement.tolist() == pytest.approx([2.0, 1.0, 2.0], abs=1e-12)


def test_training_moves_from_the_weighted_mean_to_the_ensemble() -> None:
    # D = (0), (2), n = (1, 3): the student starts at 1.5, its teachers' mean logit is that of w = 1.
    agg = make_component("agg", "feddf", steps=300, lr=0.03, eval_every=None)
    round_models = make_round_models(1, proxy=torch.tensor([[1.0], [-2.0], [0.5]], dtype=torch.float64))
    direction, _ = agg.direction(None, arrivals(agg, [[0.0], [2.0]], round_models, n=[1, 3]))
    assert direction.displacement.tolist() == pytest.approx([1.0], abs=1e-3)
    assert direction.weights.tolist() == [0.25, 0.75]


def test_the_first_distillation_step_is_that_of_adam() -> None:
    # From w = 1.5 down towards 1: whatever the gradient, Adam's first step is lr long.
    agg = make_component("agg", "feddf", steps=1, lr=0.01, eval_every=None)
    direction, _ = agg.direction(None, arrivals(agg, [[0.0], [2.0]], make_round_models(1, proxy=ONE_INPUT), n=[1, 3]))
    assert direction.displacement.tolist() == pytest.approx([1.49], abs=1e-6)


@pytest.mark.parametrize(("steps", "length"), [(3, 2e-6), (2, 1.5e-6), (4, 2.5e-6)])
def test_the_learning_rate_follows_a_cosine(steps: int, length: float) -> None:
    # Three steps of equal gradients are lr (1 + 3/4 + 1/4) long: (1 + cos(pi t / 3)) / 2 for t = 0, 1, 2. The gradient
    # is nearly the same over 2e-6, and so each of Adam's steps its rate long. T steps are lr (T + 1) / 2 long, as all
    # cosines but the first cancel out.
    agg = make_component("agg", "feddf", steps=steps, lr=1e-6, eval_every=None)
    direction, _ = agg.direction(None, arrivals(agg, [[0.0], [2.0]], make_round_models(1, proxy=ONE_INPUT), n=[1, 3]))
    assert float(direction.displacement) == pytest.approx(1.5 - length, abs=1e-9)


def test_drop_worst_leaves_out_models_at_chance_accuracy() -> None:
    # Class 0 is where the numbers add up to more than 0: w = (1, 1) is always right there, -w never.
    deltas, x = [[3.0, 3.0], [-1.0, -1.0]], torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert teachers(make_component("agg", "feddf"), deltas, x)[0] == pytest.approx(1 / (1 + math.exp(-1)))
    assert teachers(make_component("agg", "feddf", drop_worst=True), deltas, x)[0] == pytest.approx(
        1 / (1 + math.exp(-3))
    )


def test_without_teachers_feddf_equals_fedavg() -> None:
    agg = make_component("agg", "feddf", drop_worst=True)
    direction, _ = agg.direction(None, arrivals(agg, [[-1.0, -1.0], [-3.0, -3.0]]))
    assert direction.displacement.tolist() == [-2.0, -2.0]


def test_a_teacher_whose_logits_overflow_is_left_out() -> None:
    x = torch.full((1, 1), 10.0, dtype=torch.float64)
    assert teachers(make_component("agg", "feddf"), [[1e308], [0.1]], x)[0] == pytest.approx(1 / (1 + math.exp(-1)))


def test_clients_that_the_selector_excludes_are_no_teachers() -> None:
    agg = make_component("agg", "feddf")
    arrived = arrivals(agg, [[9.0], [1.0]])
    object.__setattr__(arrived, "weights", np.array([0.0, 1.0]))
    assert agg._predict_with_teachers(arrived, ONE_INPUT)[0].tolist() == teachers(agg, [[1.0]])


class Scripted(RoundModels):
    """Server networks whose accuracies are given by the test."""

    def says(self, *accuracies: float) -> "Scripted":
        self.script, self.seen = list(accuracies), list[float]()
        return self

    def accuracy(self, network: nn.Module) -> float:
        assert isinstance(network, Score)
        self.seen.append(float(network.w.detach()))
        return self.script[len(self.seen) - 1]


@pytest.mark.parametrize(
    ("eval_every", "patience", "script", "n_evaluations", "best_step"),
    [
        (1, 99, (0.5, 0.9, 0.9, 0.1, 0.2, 0.3), 6, 1),  # the first of the best
        (1, 2, (0.5, 0.9, 0.1, 0.1), 4, 1),  # two steps without a better one
        (2, 99, (0.1, 0.2, 0.3), 3, 2),
        (4, 99, (0.3, 0.2), 2, 0),  # after step 4, and at the end
    ],
)
def test_the_best_student_is_kept(
    eval_every: int, patience: int, script: tuple[float, ...], n_evaluations: int, best_step: int
) -> None:
    agg = make_component("agg", "feddf", steps=6, eval_every=eval_every, patience=patience)
    server = FlatModel(Score(1))
    data = server_only(ONE_INPUT, ServerSamples(ONE_INPUT, torch.zeros(1, dtype=torch.int64)))
    round_models = Scripted(server, data, 0, 0, server.buffers).says(*script)
    direction, _ = agg.direction(None, arrivals(agg, [[0.0], [2.0]], round_models, n=[1, 3]))
    assert len(round_models.seen) == n_evaluations
    assert float(direction.displacement) == round_models.seen[best_step]


def test_teachers_keep_their_own_batch_norm_statistics() -> None:
    network = nn.Sequential(nn.BatchNorm1d(1, affine=False), Score(1))
    round_models = make_round_models(1, ONE_INPUT, network)
    agg = make_component("agg", "feddf", steps=2, batch=1)
    layout = round_models.server.layout
    buffer_index = [block.name for block in layout.buffers].index("0.running_mean")
    rows = []
    for client, mean in enumerate([0.0, 1.0]):
        buffers = torch.ones(2, dtype=torch.float64)
        buffers[buffer_index] = mean
        rows.append(make_update(client, [2.0], buffers=buffers, counters=torch.ones(1, dtype=torch.int64)))
    arrived = make_arrived(collect_updates(agg, rows, layout), round_models=round_models)
    before, server_buffers = not_none(arrived.buffers).clone(), round_models.server.buffers.clone()
    x = torch.full((1, 1), 3.0, dtype=torch.float64)
    scale = math.sqrt(1 + 1e-5)
    logits = [float(predict_logits(arrived.model_of(i), x, 1)[0, 0]) for i in range(2)]
    assert logits == pytest.approx([2 * 3 / scale, 2 * 2 / scale], abs=1e-12)
    agg.direction(None, arrived)
    assert torch.equal(not_none(arrived.buffers), before)
    assert torch.equal(round_models.server.buffers, server_buffers)


@pytest.mark.parametrize(
    ("deltas", "options", "passes"),
    [
        # m = 2 teachers look at the n = 5 proxies once: 10. T_d = 7 steps of b = 2 see 2, 2, 1 | 2, 2, 1 | 2 = 12
        # proxies, each 3 passes: 36.
        ([[0.0], [2.0]], {"eval_every": None}, 10 + 36),
        # Students are looked at after steps 3, 6 and 7, on 8 validation samples: 24.
        ([[0.0], [2.0]], {"eval_every": 3}, 10 + 36 + 24),
        # Both teachers, too: 16.
        ([[3.0], [2.0]], {"eval_every": 3, "drop_worst": True}, 10 + 16 + 36 + 24),
        # A student that knows it all goes forward alone: 12.
        ([[2.0], [2.0]], {"eval_every": None}, 10 + 12),
        # Seen are the 2 proxies of one batch alone: by both teachers, and thrice by the student.
        ([[0.0], [2.0]], {"eval_every": None, "steps": 1}, 4 + 6),
        ([[0.0], [2.0]], {"steps": 0}, 0),
    ],
)
def test_the_servers_passes_are_counted(deltas: list[list[float]], options: dict[str, Any], passes: int) -> None:
    agg = make_component("agg", "feddf", **{"steps": 7, "batch": 2, "lr": 1e-4, **options})
    round_models = make_round_models(1, proxy=torch.tensor([[1.0], [-2.0], [0.5], [3.0], [-1.0]], dtype=torch.float64))
    agg.direction(None, arrivals(agg, deltas, round_models, n=[1, 3]))
    assert round_models.passes == passes


def test_a_run_charges_the_servers_work(tmp_path: Path) -> None:
    # m = 4 teachers look at all n = 50 proxies, T_d = 6 steps of b = 20 see 20, 20, 10 | 20, 20, 10: 100 proxies, each
    # 3 passes; a pass through logistic regression on 8 x 8 digits is 2 * 64 * 10 FLOPs.
    overrides = ("agg=feddf", "proxy=noise", "proxy.n=50", "agg.steps=6", "agg.batch=20", "agg.eval_every=null")
    distilled = run_without_files(*overrides)
    a_round = (4 * 50 + 3 * 100) * 2 * 64 * 10
    assert [report.metrics["comp/server_flops"] for report in distilled.reports] == [
        0,
        a_round,
        2 * a_round,
        3 * a_round,
    ]
    plain = run_without_files("agg=fedavg")
    assert {report.metrics["comp/server_flops"] for report in plain.reports} == {0}
    for name in ("comp/client_flops", "time/virtual_s"):
        assert distilled.last.metrics[name] == plain.last.metrics[name]
    run_training(tmp_path / "c", *overrides, "rounds=1")
    resumed = run_training(tmp_path / "c", *overrides, "resume=true")
    assert [report.step for report in resumed.reports] == [2, 3]
    assert resumed.last.metrics["comp/server_flops"] == 3 * a_round


def test_runs_are_repeatable_and_without_steps_equal_fedavg(tmp_path: Path) -> None:
    overrides = ("agg=feddf", "proxy=client_heldout", "agg.steps=20", "agg.eval_every=5")
    first_run = run_without_files(*overrides)
    assert same_bits(first_run, run_without_files(*overrides))
    plain = run_without_files("agg=fedavg")
    assert not torch.equal(first_run.weights(), plain.weights())
    without_steps = run_without_files(*overrides, "agg.steps=0")
    torch.testing.assert_close(without_steps.weights(), plain.weights(), atol=1e-6, rtol=0)
    with pytest.raises(IncompatibleConfig, match=r"agg=feddf trains networks on inputs .* choose proxy=dataset"):
        run_training(tmp_path, "agg=feddf")
