"""FedBiO's closed forms, and its effect in whole runs."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from agg_harness import collect_updates, make_arrived, make_layout, make_population, make_update
from config_options import make_component
from engine_harness import make_federation
from fedcohort.component import Facts
from fedcohort.errors import IncompatibleConfig
from fedcohort.flat import Layout
from fedcohort.hook import ClientContext
from fedcohort.startup import requirements
from fedcohort.training.local import LocalTrainer
from round_harness import run_without_files
from run_harness import FinishedRun, compose_overrides, load_facts, make_components, run_training, same_bits


def number(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def begin(n: int = 1, stored: Any = None, u: float | None = None, **options: Any) -> Any:
    """The correction of a client with `n` samples."""
    variant = "first_order" if u is None else "second_order"
    hook = make_component("agg", "fedbio", variant=variant, **options).hooks[0]
    ctx = ClientContext(0, 0, Layout((), (), ()), lambda purpose: pytest.fail("nothing is drawn"), n)
    return hook.begin(number(0.0), {} if u is None else {"u": number(u)}, stored or {}, ctx)


@dataclass
class Step:
    """A mini-batch whose derivatives are given."""

    positions: torch.Tensor
    gradient: torch.Tensor
    slopes: Any
    hessian: float = 1.0

    def validation_gradient(self) -> torch.Tensor:
        return self.gradient

    def derivative_along(self, u: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.slopes(u)
        return result

    def hessian_product(self, u: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.hessian * u


def toy(steps: int, lr: float, tau: float, eta_x: float) -> list[tuple[float, float, float]]:
    """(x, y, u) after each step on g = (y - x)^2 / 2, f = (y - 1)^2 / 2, from 0.

    d^2 g / dx dy = -1, where weighted samples have sigmoid'(x) s / |B|: the toy's slope divides that out.
    """
    client, y = begin(u=0.0, tau=tau, eta_x=eta_x), number(0.0)
    history = []
    for _ in range(steps):
        x = client.x.clone()
        sigma = torch.sigmoid(x)
        client.weigh(Step(torch.tensor([0]), y - 1, lambda u, s=sigma: -u / (s * (1 - s))))
        y = y - lr * (y - x)
        history.append((float(client.x), float(y), float(client.u)))
    return history


def test_the_second_order_update_of_the_weights_by_hand() -> None:
    # All from the old (x, y, u), rates 1/2: y += (x - y) / 2, u += (y - 1 - u) / 2, x -= u / 2.
    # (0, 0, 0) -> u = -.5 -> x = .25, u = -.75 -> x = .25 + .375, y = .125, u = -.875 -> x = .625 + .4375,
    # y = .125 + .25, u = -.875 + (.125 - 1 + .875) / 2.
    expected = [(0, 0, -0.5), (0.25, 0, -0.75), (0.625, 0.125, -0.875), (1.0625, 0.375, -0.875)]
    for result, expected_row in zip(toy(4, 0.5, 0.5, 0.5), expected, strict=True):
        assert result == pytest.approx(expected_row, abs=1e-12)


def test_the_second_order_variant_converges() -> None:
    # f is least at y = 1, which x = 1 gives; there is nothing left to look for: u = 0.
    assert toy(250, 0.5, 0.5, 0.1)[-1] == pytest.approx((1, 1, 0), abs=1e-9)


def test_a_sample_that_agrees_with_validation_gains_weight() -> None:
    # y = 0, l = (y - 1)^2 / 2 and (y + 1)^2 / 2 with slopes -1 and 1, f = (y - 1)^2 / 2: u = grad f = -1, s = (1, -1),
    # so that x moves by eta sigmoid'(0) s / |B| = +-1 * .25 / 2. The other sign would keep the mislabelled one.
    client = begin(n=2, eta_x=1)
    weights = client.weigh(Step(torch.arange(2), number(-1.0), lambda u: number(-1.0, 1.0) * u))
    assert weights.tolist() == [1.0, 1.0]
    assert client.x.tolist() == [0.125, -0.125]


def test_only_the_weights_of_the_mini_batch_change() -> None:
    client = begin(n=4, stored={"x": number(0.5, 0.0, 0.0, -0.5)}, eta_x=1)
    weights = client.weigh(Step(torch.tensor([3, 1]), number(-1.0), lambda u: number(1.0, 1.0)))
    assert weights.tolist() == pytest.approx([2 / (1 + 2.718281828459045**0.5), 1.0])
    assert client.x[[0, 2]].tolist() == [0.5, 0.0]
    assert float(client.x[1]) == 0.125


def test_stored_weights_are_padded_and_not_modified() -> None:
    stored = number(0.5, -0.5, 9.0, 9.0)
    client = begin(n=2, stored={"x": stored}, eta_x=1)
    client.weigh(Step(torch.arange(2), number(1.0), lambda u: number(1.0, 1.0)))
    assert stored.tolist() == [0.5, -0.5, 9.0, 9.0]
    assert client.finish(number(0.0), 1, 0.1).stored["x"].shape == (2,)


def test_u_and_x_are_bounded() -> None:
    # |u| = 5 comes to u_max = 2, its sign stays: s = 1e9 u drives x to its bounds.
    client, values = begin(n=2, eta_x=1, u_max=2, x_max=3), []

    def slopes(u: torch.Tensor) -> torch.Tensor:
        values.append(float(u))
        return number(1e9, -1e9) * u

    client.weigh(Step(torch.arange(2), number(-5.0), slopes))
    assert values == pytest.approx([-2.0])
    assert client.x.tolist() == [-3.0, 3.0]
    second = begin(u=1.9, u_max=2, tau=1)
    second.weigh(Step(torch.tensor([0]), number(5.0), lambda u: u, hessian=0.0))
    assert float(second.u) == pytest.approx(2.0)


@pytest.mark.parametrize("gradient", [float("nan"), float("inf")])
def test_a_non_finite_gradient_keeps_the_weights(gradient: float) -> None:
    client = begin(n=1, stored={"x": number(0.5)}, eta_x=1)
    client.weigh(Step(torch.tensor([0]), number(gradient), lambda u: u))
    assert client.x.tolist() == [0.5]


def test_u_is_averaged_like_the_models() -> None:
    # p = (1/4, 3/4): du = (4, 0), (0, 4) move u = (1, 1) by (1, 3).
    agg = make_component("agg", "fedbio", variant="second_order")
    state = replace(agg.init(make_population(5), 2), u=number(1.0, 1.0))
    updates = [
        make_update(0, [4, 0], n=1, uploads={"delta_u": number(4, 0)}, stored={"x": number(0)}),
        make_update(1, [0, 4], n=3, uploads={"delta_u": number(0, 4)}, stored={"x": number(0, 0, 0)}),
    ]
    collected = collect_updates(agg, updates, make_layout(2))
    direction, after = agg.direction(state, make_arrived(collected))
    assert direction.displacement.tolist() == [1.0, 3.0]
    assert after.u.tolist() == [2.0, 4.0]
    assert agg.broadcast(after)["u"] is after.u


def test_the_first_order_variant_uploads_nothing_more() -> None:
    (hook,) = make_component("agg", "fedbio").hooks
    assert (hook.downloads, hook.uploads, hook.averaged) == ((), (), ())
    assert begin().finish(number(0.0), 0, 0.1).uploads == {}


def test_the_second_order_variant_uploads_the_change_of_u() -> None:
    client = begin(u=0.25, tau=0.5)
    client.weigh(Step(torch.tensor([0]), number(1.0), lambda u: u))
    upload = client.finish(number(0.0), 1, 0.1)
    assert float(upload.uploads["delta_u"]) == pytest.approx(0.5 * (1 - 0.25))


SHORT = ("rounds=2", "split.limit=240")
SEQUENTIAL_ENGINE = ("engine=sequential", "engine.closed_form=false")


@pytest.mark.parametrize("variant", ["first_order", "second_order"])
def test_with_eta_x_0_fedbio_equals_fedavg_bit_for_bit(variant: str) -> None:
    fedavg = run_without_files("agg=fedavg", *SHORT, *SEQUENTIAL_ENGINE)
    fedbio = run_without_files("agg=fedbio", *SHORT, f"agg.variant={variant}", "agg.eta_x=0")
    assert same_bits(fedavg, fedbio)


def test_with_eta_x_0_a_run_with_other_methods_is_unchanged() -> None:
    overrides = (
        *SHORT,
        "client=adam",
        "regulariser=prox",
        "samples=random",
        "model=mlp",
        "objective=ce",
        "server=momentum",
    )
    fedavg = run_without_files("agg=fedavg", *overrides, *SEQUENTIAL_ENGINE)
    assert same_bits(fedavg, run_without_files("agg=fedbio", *overrides, "agg.eta_x=0"))


def stored_weights(run: FinishedRun) -> dict[int, torch.Tensor]:
    """x of every client that was ever seen."""
    callback_states = torch.load(run.folder / "last.ckpt", weights_only=True)["callbacks"]
    clients = next(state["clients"] for state in callback_states.values() if "clients" in state)
    return {int(k): row["x"] for k, row in clients.items()}


def test_clean_samples_get_more_weight_than_mislabelled_ones(tmp_path: Path) -> None:
    client_ids = ("clients=4", "cohort=4", "split.client_val=0.5", "heterogeneity=noise15", "label_noise.a=30")
    how = ("client.batch=null", "client.epochs=20", "client.lr=0.5", "rounds=5", "eval.clients_every=0")
    overrides = ("agg=fedbio", "agg.eta_x=300", *client_ids, *how)
    config = compose_overrides(*overrides)
    train = load_facts(config).federation.train
    clean, flipped = [], []
    for k, x in stored_weights(run_training(tmp_path, *overrides)).items():
        rows = slice(int(train.offsets[k]), int(train.offsets[k + 1]))
        correctly_labelled = train.y[rows] == train.true_y[rows]
        weights = 2 * torch.sigmoid(x)
        clean.append(weights[correctly_labelled])
        flipped.append(weights[~correctly_labelled])
    assert len(torch.cat(flipped)) > 100
    assert float(torch.cat(clean).mean()) > float(torch.cat(flipped).mean()) + 0.3


def test_a_client_that_is_left_out_keeps_its_old_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ("agg=fedbio", "cohort=12", "client.epochs=1", "client.batch=8", "split.limit=240")
    before = stored_weights(run_training(tmp_path / "one", *overrides, "rounds=1"))
    result = LocalTrainer.make_result

    def make_nan(self: LocalTrainer, task: Any, delta: Any, *arguments: Any) -> Any:
        return result(self, task, delta * (float("nan") if (task.round, task.client) == (1, 2) else 1.0), *arguments)

    monkeypatch.setattr(LocalTrainer, "make_result", make_nan)
    after = stored_weights(run_training(tmp_path / "two", *overrides, "rounds=2"))
    assert torch.equal(before[2], after[2])
    assert not torch.equal(before[1], after[1])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("objective=flash_robust",),
            "agg=fedbio weighs noisy labels, but objective=flash_robust already replaces labels",
        ),
        (("agg.variant=second_order", "codec=mask"), "agg=fedbio compares or corrects clients in all parameters"),
    ],
)
def test_incompatible_options_are_rejected(tmp_path: Path, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(IncompatibleConfig, match=message):
        run_training(tmp_path, "agg=fedbio", *overrides)


def test_clients_without_validation_data_are_rejected() -> None:
    config = compose_overrides("agg=fedbio")
    parts, federation = make_components("agg=fedbio"), make_federation()
    facts = Facts(parts, {**config.config, "cohort": 2}, federation)

    def check() -> None:
        requirements.check_population(config.choices, facts)

    check()
    federation.val.offsets[2:] = federation.val.offsets[1]
    with pytest.raises(IncompatibleConfig, match=r"learns from the clients' validation sets.*split.client_val"):
        check()


def test_the_additional_cost_of_a_step_is_charged() -> None:
    # In products of matrices, of which a forward pass has one a layer, x W: a gradient has 3, with those to x and to W;
    # its slope along u has 3 (x W, x' W, x U); H u is the gradient's 3, each with its derivative.
    passes = {
        variant: make_component("agg", "fedbio", variant=variant).hooks[0].passes
        for variant in ("first_order", "second_order")
    }
    assert passes == {"first_order": 3 + 3, "second_order": 3 + 3 + 2 * 3}
