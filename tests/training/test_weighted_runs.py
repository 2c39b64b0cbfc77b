"""Whole runs whose steps weigh samples: the stored vectors are resumed, shared over processes, and charged."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from config_options import make_component
from fedcohort.round import aggregate as closing
from process_kills import act_at_call, kill_self, run_in_child
from round.test_round import costs
from round_harness import run_without_files
from run_harness import run_training, same_bits

FEDBIO = ("agg=fedbio", "agg.eta_x=5", "client.epochs=1", "client.batch=8", "eval.clients_every=0")
OVERRIDES = (*FEDBIO, "split.limit=240", "rounds=2")
SECOND = (*OVERRIDES, "agg.variant=second_order")


@pytest.mark.parametrize("inputs", [(*OVERRIDES, "client_store.limit_gb=0"), SECOND], ids=["files", "second"])
def test_a_killed_run_with_sample_weights_resumes_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: tuple[str, ...]
) -> None:
    uninterrupted = run_training(tmp_path / "whole", *inputs)
    act_at_call(monkeypatch, closing, "hash_selection_history", 2, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path / "killed", *inputs) and None))
    monkeypatch.undo()
    assert same_bits(uninterrupted, run_training(tmp_path / "killed", *inputs, "resume=true"))


def test_sample_weights_in_files_give_the_same_bits_as_in_memory(tmp_path: Path) -> None:
    assert same_bits(
        run_training(tmp_path / "a", *OVERRIDES), run_training(tmp_path / "b", *OVERRIDES, "client_store.limit_gb=0")
    )


def test_the_number_of_slices_does_not_change_weighted_training() -> None:
    assert same_bits(run_without_files(*SECOND), run_without_files(*SECOND, "engine.slices=3"))


@pytest.mark.parametrize("overrides", [(*OVERRIDES, "cohort=5"), (*SECOND, "samples=random")], ids=["first", "second"])
def test_weighted_training_on_two_ranks_equals_one_process(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    first_run = run_training(tmp_path / "one", *overrides).weights()
    two_ranks = run_training(tmp_path / "two", *overrides, "trainer.devices=2").weights()
    torch.testing.assert_close(two_ranks, first_run, atol=1e-5, rtol=0)


def test_ranks_gather_no_vectors_in_a_round_without_the_aggregators_hooks(tmp_path: Path) -> None:
    """In FedDiverse's plain first round only the codec's hooks run, which store no vectors."""
    overrides = ("selector=feddiverse", "selector.epochs=1", "codec=mask", "trainer.devices=2")
    assert bool(run_training(tmp_path, *OVERRIDES, *overrides).weights().isfinite().all())


def test_stored_sample_weights_affect_later_rounds(tmp_path: Path) -> None:
    """A fresh x in every round would be another run."""
    overrides = (*OVERRIDES, "cohort=12")
    first_run = run_training(tmp_path / "a", *overrides)
    hook = type(make_component("agg", "fedbio").hooks[0])
    begin = hook.begin
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hook, "begin", lambda self, w, down, stored, job: begin(self, w, down, {}, job))
        second_run = run_training(tmp_path / "b", *overrides)
    assert not same_bits(first_run, second_run)


@pytest.mark.parametrize(("overrides", "factor"), [(OVERRIDES, 3.0), (SECOND, 5.0)], ids=["first", "second"])
def test_the_cost_of_sample_weights_is_charged(overrides: tuple[str, ...], factor: float) -> None:
    # A step is 3 forward passes; slopes and the validation gradient are 3 each, H u is 6: 9 / 3, and 15 / 3.
    fedavg = costs(run_without_files(*[override for override in overrides if not override.startswith("agg")]))
    fedbio = costs(run_without_files(*overrides))
    for t in range(2):
        assert fedbio[t]["client_flops"] == pytest.approx(factor * fedavg[t]["client_flops"])
        assert fedbio[t]["virtual_s"] == pytest.approx(factor * fedavg[t]["virtual_s"])
        combined = 2.0 if "agg.variant=second_order" in overrides else 1.0
        assert fedbio[t]["up_bytes"] == combined * fedavg[t]["up_bytes"]
        assert fedbio[t]["down_bytes"] == combined * fedavg[t]["down_bytes"]


@pytest.mark.parametrize(
    "overrides",
    [
        ("deadline=fixed", "deadline.k=0.7", "deadline.partial_work=true"),
        ("objective=gce", "regulariser=prox"),
        ("model=mlp", "engine.precision=bf16", "engine.force=true"),
    ],
    ids=" ".join,
)
def test_sample_weights_work_with_other_options(overrides: tuple[str, ...], tmp_path: Path) -> None:
    last = run_training(tmp_path, *OVERRIDES, *overrides).last
    assert np.isfinite(last.metrics["test/loss"])
