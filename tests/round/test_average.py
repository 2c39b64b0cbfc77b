"""The averaged model: by hand, without influence on the rounds, resumed to the bit, and with batch norm."""

import os
from pathlib import Path

import pytest
import torch
from torch import nn

from fedcohort.errors import OptionError
from fedcohort.flat import FlatModel
from fedcohort.round import round as rounds
from fedcohort.round.average import ModelAverage
from process_kills import act_at_call, kill_self, run_in_child
from run_harness import FinishedRun, run_training, startup_notices

AVERAGE = "weights_average.pt"
EMA = ("eval.average=ema", "eval.average_decay=0.5")
BATCH_NORM = ("model=resnet8_gn", "model.norm=batch", "split.limit=120", "client.epochs=1", "rounds=2")


def weights_of(run: FinishedRun, name: str) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(run.folder / name, weights_only=True)
    return weights


def small_model() -> FlatModel:
    return FlatModel(nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1, affine=False)))


def test_a_model_average_of_three_rounds_by_hand() -> None:
    """Models 1, 2, 4 with decay 1/2: 1, (1/2 + 2) / (3/2), (1/4 + 2/2 + 4) / (7/4); running means are -3 times that."""
    server = small_model()
    server.w.fill_(9.0)
    average = ModelAverage(server, 0.5)
    with average.load_average():
        assert server.w.item() == 9, "before the first round it is the initial model"
    for round, (model, expected) in enumerate(((1.0, 1.0), (2.0, 5 / 3), (4.0, 3.0)), 1):
        server.w.fill_(model)
        server.buffers.fill_(-3 * model)
        server.counters += 1
        average.add_round()
        with average.load_average():
            assert server.w.item() == pytest.approx(expected)
            assert server.buffers.tolist() == pytest.approx([-3 * expected] * 2)
            assert server.counters.item() == round, "counters are of the last model"
        assert (server.w.item(), server.buffers.tolist()) == (model, [-3 * model] * 2)


def test_an_average_without_decay_is_the_last_model_and_near_1_the_mean_of_all() -> None:
    for decay, expected, tolerance in ((0.0, 0.125, 0.0), (1 - 1e-9, (0.7 + 1.3 + 0.125) / 3, 1e-6)):
        server = small_model()
        average = ModelAverage(server, decay)
        for model in (0.7, 1.3, 0.125):
            server.w.fill_(model)
            average.add_round()
        with average.load_average():
            assert server.w.item() == pytest.approx(expected, rel=tolerance)


def test_the_values_of_the_server_return_after_an_error() -> None:
    server = small_model()
    average = ModelAverage(server, 0.5)
    average.add_round()
    server.w.fill_(5.0)
    with pytest.raises(RuntimeError, match="evaluation"), average.load_average():
        raise RuntimeError("evaluation")
    assert server.w.item() == 5


@pytest.mark.parametrize(
    "overrides",
    [
        ("agg=scaffold", "server=adam", "selector=flash", "deadline=fixed", "device=phones"),
        ("agg=fedbuff", "deadline=buffered"),
        ("agg=median", "server=momentum", "availability=bernoulli", "availability.p=0.3"),
        BATCH_NORM,
    ],
)
def test_an_average_changes_nothing_but_what_is_evaluated(overrides: tuple[str, ...], tmp_path: Path) -> None:
    """The unaveraged metrics are those of the run without an average; d=0 gives these for the average, too."""
    plain, last, averaged = (
        run_training(tmp_path / str(n), *overrides, *average)
        for n, average in enumerate(((), (EMA[0], "eval.average_decay=0"), EMA))
    )
    fingerprints = [[report.fingerprint for report in run.reports] for run in (plain, last, averaged)]
    assert fingerprints[0] == fingerprints[1] == fingerprints[2]
    for before, last_report, after in zip(plain.reports, last.reports, averaged.reports, strict=True):
        for metric in ("acc", "loss"):
            for name in (f"test/{metric}", f"server_val/{metric}"):
                assert before.metrics[name] == last_report.metrics[name] == after.metrics[f"{name}_unaveraged"]
        assert last_report.clients.keys() == before.clients.keys()
    assert averaged.last.metrics["test/loss"] != plain.last.metrics["test/loss"]
    assert averaged.last.metrics["clients/loss_mean"] != plain.last.metrics["clients/loss_mean"]
    assert (plain.weights() == averaged.weights()).all()
    assert not (plain.folder / AVERAGE).exists()


def test_the_average_of_a_run_is_that_of_its_models(tmp_path: Path) -> None:
    """After two rounds, from the final weights of runs of one round and of two: (w_1 / 2 + w_2) / (3 / 2)."""
    first_run, second_run = (run_training(tmp_path / str(n), *BATCH_NORM[:-1], f"rounds={n}", *EMA) for n in (1, 2))
    first, second = weights_of(first_run, "weights.pt"), weights_of(second_run, "weights.pt")
    average = weights_of(second_run, AVERAGE)
    assert any(name.endswith("running_var") for name in average)
    for name, values in average.items():
        if values.is_floating_point():
            assert torch.allclose(values, (first[name] / 2 + second[name]) / 1.5, atol=1e-6), name
        else:
            assert torch.equal(values, second[name]), name
    assert second_run.last.metrics["test/acc_best"] == max(report.metrics["test/acc"] for report in second_run.reports)


def test_a_killed_run_resumes_its_average(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_run = run_training(tmp_path / "whole", *EMA)
    act_at_call(monkeypatch, rounds, "make_round_report", 4, kill_self)
    assert os.WIFSIGNALED(run_in_child(lambda: run_training(tmp_path, *EMA) and None))
    monkeypatch.undo()
    resumed = run_training(tmp_path, *EMA, "resume=true")
    assert resumed.reports[0].step == 3
    assert resumed.last.metrics == full_run.last.metrics
    weights = [weights_of(run, AVERAGE) for run in (resumed, full_run)]
    assert all(torch.equal(values, weights[1][name]) for name, values in weights[0].items())


def test_options_of_the_average_are_checked(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"eval.average must be one of none, ema, got 'mean'"):
        run_training(tmp_path, "eval.average=mean")
    with pytest.raises(OptionError, match=r"eval.average_decay must be a number in \[0, 1\), got 1"):
        run_training(tmp_path, "eval.average=ema", "eval.average_decay=1")
    notice = "eval.average_decay=0.5 has no effect with eval.average=none: set eval.average=ema"
    assert notice in startup_notices("eval.average_decay=0.5")
    assert notice not in startup_notices(*EMA)


def test_two_processes_have_the_same_average(tmp_path: Path) -> None:
    first_run = run_training(tmp_path / "one", *EMA)
    assert run_in_child(lambda: run_training(tmp_path / "two", *EMA, "trainer.devices=2") and None) == 0
    (folder,) = (tmp_path / "two" / "runs").iterdir()
    average = torch.load(folder / AVERAGE, weights_only=True)
    assert all(
        torch.allclose(values, average[name], atol=1e-6) for name, values in weights_of(first_run, AVERAGE).items()
    )
