"""Laws of every codec, with the defaults of its yaml file."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from case_loop import for_all
from codec_harness import BYTES_PER_S, begin_round, draw_normal, make_generator_factory, make_layout
from config_options import list_options, make_component
from engine_harness import SEED, make_federation, make_network, make_task
from failure_hints import failure_hint
from fedcohort.flat import FlatModel, Layout
from fedcohort.hook import find_weigher
from fedcohort.training.engines import choose_engine
from fedcohort.training.local import LocalTrainer
from fedcohort.training.local_method import LocalTrainingMethod
from fedcohort.types import ClientUpdate
from global_rng_guard import forbid_global_rng
from run_harness import run_training

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("lowrank", {"k": 2, "min_size": 1, "dist": "uniform01"}),
    ("lowrank", {"k": 3, "min_size": 1, "mode": "posthoc"}),
    ("mask", {"rho": 0.01}),
    ("subsample", {"rho": 1.0}),
    ("quant", {"bits": 1}),
    ("quant", {"bits": 16, "rotate": True}),
    ("quant", {"bits": 5, "rotate": True, "rho": 0.3}),
]
CASES: list[tuple[str, dict[str, Any]]] = [(choice, {}) for choice in list_options("codec")] + [
    case for case in VARIANTS if case[0] in list_options("codec")
]
SHAPES = ((64, 32), (64,), (40, 3, 3, 3), (40,), (1,), (), (3, 5), (1, 1), (2, 1, 1))
LAYOUTS = {
    "mixed": make_layout(*SHAPES),
    "one": make_layout((1,)),
    "scalar": make_layout(()),
    "tiny": make_layout((2, 3)),
    "nothing": Layout((), (), ()),
}


def spell_case(case: tuple[str, dict[str, Any]]) -> str:
    return "-".join([case[0], *map(str, case[1].values())])


@pytest.fixture(params=CASES, ids=spell_case)
def codec(request: pytest.FixtureRequest) -> Any:
    choice, changes = request.param
    return make_component("codec", choice, **changes)


@pytest.fixture(params=[case for case in CASES if make_component("codec", case[0], **case[1]).hooks], ids=spell_case)
def codec_with_hooks(request: pytest.FixtureRequest) -> Any:
    """Yield each codec that restricts the gradient during training."""
    choice, changes = request.param
    return make_component("codec", choice, **changes)


every_layout = for_all("layout", LAYOUTS.values(), LAYOUTS)


@every_layout
@for_all("dtype", [torch.float32, torch.float64])
@failure_hint("Return a tensor of the update's shape and dtype, and leave the update as it was.")
def test_shape_and_dtype_are_unchanged(codec: Any, layout: Layout, dtype: torch.dtype) -> None:
    delta = draw_normal(layout.n_params, dtype=dtype)
    before = delta.clone()
    received = codec.transmit(delta, layout, make_generator_factory())
    assert (received.shape, received.dtype) == (delta.shape, dtype)
    assert torch.isfinite(received).all()
    assert torch.equal(delta, before)


@every_layout
@failure_hint("Compute in one precision whatever the update's dtype is.")
def test_both_precisions_arrive_equally(codec: Any, layout: Layout) -> None:
    delta = draw_normal(layout.n_params)
    a, b = (
        codec.transmit(delta, layout, make_generator_factory()),
        codec.transmit(delta.double(), layout, make_generator_factory()),
    )
    assert torch.equal(a.double(), b)


@every_layout
@failure_hint("Encode an update of zeros as zeros.")
def test_a_zero_update_stays_zero(codec: Any, layout: Layout) -> None:
    assert not codec.transmit(torch.zeros(layout.n_params), layout, make_generator_factory()).any()


@every_layout
@for_all("value", [math.nan, -math.inf])
@failure_hint("Keep NaN and infinity in the result: the server drops such an update.")
def test_a_non_finite_update_raises_nothing_and_stays_non_finite(codec: Any, layout: Layout, value: float) -> None:
    update = draw_normal(layout.n_params)
    update[: layout.n_params // 2] = value
    assert codec.transmit(update, layout, make_generator_factory()).shape == update.shape
    if layout.n_params:
        non_finite_update = torch.full((layout.n_params,), value)
        assert not torch.isfinite(codec.transmit(non_finite_update, layout, make_generator_factory())).all()


@failure_hint("Derive all draws from the key of (seed, round, client).")
def test_encodings_are_keyed_by_round_and_client(codec: Any) -> None:
    layout = LAYOUTS["mixed"]
    delta = draw_normal(layout.n_params)
    with forbid_global_rng():
        first = codec.transmit(delta, layout, make_generator_factory(3, 5))
    with forbid_global_rng():
        assert torch.equal(codec.transmit(delta, layout, make_generator_factory(3, 5)), first)
    lossless = torch.equal(first, delta)
    for other_key in (make_generator_factory(4, 5), make_generator_factory(3, 6)):
        assert torch.equal(codec.transmit(delta, layout, other_key), first) == lossless


def test_hooks_are_keyed_by_round_and_client(codec_with_hooks: Any) -> None:
    layout = LAYOUTS["mixed"]
    g = [draw_normal(layout.n_params) for _ in range(3)]
    with forbid_global_rng():
        for gradient, client in zip(g, (3, 3, 4), strict=True):
            begin_round(codec_with_hooks, torch.zeros(layout.n_params), layout, client).correct(gradient, gradient)
    assert torch.equal(g[0], g[1])
    assert not torch.equal(g[0], g[2])


@every_layout
def test_a_corrected_gradient_is_sent_without_loss(codec_with_hooks: Any, layout: Layout) -> None:
    # `begin` and `transmit` draw the same numbers, so that the gradient that passes the hook can be sent
    g = draw_normal(layout.n_params)
    begin_round(codec_with_hooks, torch.zeros(layout.n_params), layout, 2).correct(g, g)
    torch.testing.assert_close(codec_with_hooks.transmit(g, layout, make_generator_factory(2)), g, atol=1e-4, rtol=1e-4)


def test_the_memory_layout_is_irrelevant(codec: Any) -> None:
    plain, last = LAYOUTS["mixed"], make_layout(*SHAPES, channels_last=True)
    delta = draw_normal(plain.n_params)

    def change_layout(vector: torch.Tensor) -> torch.Tensor:
        copy = torch.empty_like(vector)
        for a, b in zip(plain.parameters, last.parameters, strict=True):
            b.make_view(copy).copy_(a.make_view(vector))
        return copy

    assert not torch.equal(change_layout(delta), delta)
    assert torch.equal(
        codec.transmit(change_layout(delta), last, make_generator_factory()),
        change_layout(codec.transmit(delta, plain, make_generator_factory())),
    )
    if codec.hooks:
        w, g, changed_gradient = torch.zeros_like(delta), delta.clone(), change_layout(delta)
        begin_round(codec, w, plain).correct(g, w)
        begin_round(codec, w, last).correct(changed_gradient, w)
        torch.testing.assert_close(changed_gradient, change_layout(g))


@every_layout
@failure_hint("Charge the bytes of what `encode` returns.")
def test_the_transmitted_bytes_are_the_charged_bytes(codec: Any, layout: Layout) -> None:
    delta = draw_normal(layout.n_params)
    if not hasattr(codec, "encode"):
        assert codec.transmit(delta, layout, make_generator_factory()) is delta
        assert len(delta.numpy().tobytes()) == codec.bytes_up(layout)
        return
    wire = codec.encode(delta, layout, make_generator_factory())
    assert len(b"".join(array.tobytes() for array in wire)) == codec.bytes_up(layout)
    received = torch.cat(
        [b.make_view(codec.transmit(delta, layout, make_generator_factory())).flatten() for b in layout.parameters]
        or [delta]
    )
    assert codec.decode(wire, layout).tolist() == received.tolist()


@every_layout
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_gives_the_same_result_as_the_cpu(codec: Any, layout: Layout) -> None:
    delta = draw_normal(layout.n_params)
    received = codec.transmit(delta.cuda(), layout, make_generator_factory())
    assert received.is_cuda
    assert torch.equal(received.cpu(), codec.transmit(delta, layout, make_generator_factory()))
    if codec.hooks:
        w, g, on_gpu = torch.zeros_like(delta), delta.clone(), delta.cuda()
        begin_round(codec, w, layout).correct(g, w)
        begin_round(codec, w.cuda(), layout).correct(on_gpu, w.cuda())
        torch.testing.assert_close(on_gpu.cpu(), g)


def make_codec_trainer(
    codec: Any, *layers: nn.Module, other_hooks: tuple[Any, ...] = (), **client: Any
) -> LocalTrainer:
    server, worker = (FlatModel(make_network(torch.float64, *layers)) for _ in range(2))
    parts = (make_component("objective", "ce"), make_component("client", "sgd", **client), codec)
    method = LocalTrainingMethod(*parts, (*other_hooks, *codec.hooks))
    return LocalTrainer(server, worker, make_federation(dtype=torch.float64), method, SEED)


def train_clients(codec: Any, kind: str) -> list[ClientUpdate]:
    engine, _ = choose_engine(kind, make_codec_trainer(codec, momentum=0.5), 3)
    return list(engine.train_clients([make_task(k) for k in range(3)], {}))


def test_engines_agree_with_every_codec(codec_with_hooks: Any) -> None:
    reference, *other_results = (
        train_clients(codec_with_hooks, kind) for kind in ("sequential", "vectorised", "debug")
    )
    assert all(float(update.delta.norm()) > 0 for update in reference)
    for result in other_results:
        for a, b in zip(reference, result, strict=True):
            torch.testing.assert_close(a.delta, b.delta, atol=1e-6, rtol=0)
            assert a.batch_loss.tolist() == pytest.approx(b.batch_loss.tolist(), abs=1e-10)


@failure_hint("Transmit parameters only: buffers are averaged whole.")
def test_buffers_are_not_encoded(codec: Any) -> None:
    trainer = make_codec_trainer(codec, nn.BatchNorm1d(8))
    update = trainer.train(make_task(0), {})
    assert torch.equal(update.buffers, trainer.worker.buffers)
    assert torch.equal(update.counters, trainer.worker.counters)
    assert not torch.equal(update.buffers, trainer.server.buffers)


def test_a_plain_round_is_trained_for_its_upload(codec_with_hooks: Any) -> None:
    # FedDiverse's first rounds leave out aggregator (here one that weighs samples) and regulariser; the codec stays
    only_codec, task = make_codec_trainer(codec_with_hooks), replace(make_task(0), uses_only_codec_hooks=True)
    weighers = [
        agg.hooks
        for agg in (make_component("agg", choice) for choice in list_options("agg"))
        if find_weigher(agg.hooks)
    ]
    with_sample_weights = make_codec_trainer(codec_with_hooks, other_hooks=weighers[0])
    assert with_sample_weights.weighs_samples
    torch.testing.assert_close(
        with_sample_weights.train(task, {}).delta, only_codec.train(make_task(0), {}).delta, atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("choice", list_options("codec"))
def test_a_run_charges_its_bytes_and_their_time(tmp_path: Path, choice: str) -> None:
    options = ("codec.k=4", "codec.min_size=1") if choice == "lowrank" else ()
    codec_options = {option.split(".")[1].split("=")[0]: int(option.split("=")[1]) for option in options}
    update_bytes = make_component("codec", choice, **codec_options).bytes_up(make_layout((10, 64), (10,)))
    device = ("device=instant", "device._target_=codec_harness.Uplink")
    run = run_training(tmp_path, f"codec={choice}", *options, *device, "rounds=2", "engine=sequential")
    assert run.last.metrics["comm/up_bytes"] == 2 * 4 * update_bytes
    assert run.last.metrics["time/virtual_s"] == pytest.approx(2 * update_bytes / BYTES_PER_S)
    assert run.last.metrics["comm/down_bytes"] == 2 * 4 * 4 * 650
    assert run.last.fingerprint != run.reports[0].fingerprint
