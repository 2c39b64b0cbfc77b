"""The run as a whole: the traps of an epoch that is a round, and what a round promises."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from config_options import make_component
from fedcohort.data.federation import Federation
from fedcohort.startup import build
from fedcohort.training.evaluate import mean_over_samples
from run_harness import SMALL, FinishedRun, compose_overrides, load_facts, run_training, same_bits

SELECTORS = ("random", "round_robin", "powd", "ucb_cs", "flash")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    return run_training(tmp_path_factory.mktemp("reference"))


def test_the_same_command_gives_the_same_bits(reference: FinishedRun, tmp_path: Path) -> None:
    assert same_bits(reference, run_training(tmp_path))


def test_another_seed_gives_other_results(reference: FinishedRun, tmp_path: Path) -> None:
    assert not same_bits(reference, run_training(tmp_path, "seed=1"))


@pytest.mark.parametrize("slices", [3, 7])
def test_results_do_not_depend_on_the_number_of_slices(reference: FinishedRun, tmp_path: Path, slices: int) -> None:
    assert same_bits(reference, run_training(tmp_path, f"engine.slices={slices}"))


def test_the_global_generators_are_untouched(tmp_path: Path) -> None:
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    run_training(tmp_path)
    after = (torch.rand(1), np.random.rand())  # noqa: NPY002
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    assert after == (torch.rand(1), np.random.rand())  # noqa: NPY002


@pytest.mark.parametrize("slices", [1, 3])
def test_cohorts_of_any_size_train_all_of_their_clients(tmp_path: Path, slices: int) -> None:
    # Lightning fixes the number of batches before the cohort is known: cohorts of 5, 2, 3, 0, 7 became 5, 2, 3, 0, 5.
    overrides = [
        "availability=bernoulli",
        "availability.p=0.2",
        "rounds=12",
        "cohort=6",
        "split.limit=240",
        f"engine.slices={slices}",
    ]
    run = run_training(tmp_path, *overrides)
    sizes = [len(report.cohort) for report in run.reports[1:]]
    assert len(set(sizes)) > 2
    assert [len(report.arrived) for report in run.reports[1:]] == sizes
    for report in run.reports[1:]:
        trained = np.flatnonzero(~np.isnan(report.clients["train_loss"]))
        assert trained.tolist() == report.cohort.tolist()


def test_flash_trains_all_clients_first(tmp_path: Path) -> None:
    run = run_training(tmp_path, "selector=flash", "engine.slices=3")
    assert [len(cohort) for cohort in run.cohorts] == [12, 4, 4]


def test_an_empty_round_changes_nothing_but_the_clock(tmp_path: Path) -> None:
    overrides = ["availability=bernoulli", "availability.p=1e-9", "agg=scaffold", "server=momentum"]
    run = run_training(tmp_path, *overrides)
    hashes = {report.fingerprint.split(":")[1] for report in run.reports}
    assert len(hashes) == 1
    assert [report.step for report in run.reports] == [0, 1, 2, 3]
    assert all(len(report.cohort) == 0 for report in run.reports)


def test_the_report_scores_the_new_model(reference: FinishedRun) -> None:
    # in on_train_epoch_end the validation loop would already have scored the previous model
    accuracies = [report.metrics["test/acc"] for report in reference.reports]
    federation = _federation()
    network = _network(federation, reference)
    with torch.no_grad():
        hits = network(federation.server_test.x).argmax(1) == federation.server_test.y
    assert accuracies[-1] == pytest.approx(float(hits.float().mean()), abs=1e-6)
    assert accuracies[-1] != accuracies[-2]


def test_the_report_of_step_0_measures_the_initial_model(tmp_path: Path) -> None:
    large_lr, small_lr = run_training(tmp_path / "a", "client.lr=0.1"), run_training(tmp_path / "b", "client.lr=0.0001")
    assert large_lr.reports[0].metrics == small_lr.reports[0].metrics
    assert large_lr.reports[0].step == 0


def test_client_metrics_equal_evaluations_of_single_clients(reference: FinishedRun) -> None:
    federation = _federation()
    network = _network(federation, reference)
    client_accuracies = []
    for k in range(federation.n_clients):
        x, y = federation.test.client_samples(k)
        client_accuracies.append(float((network(x).argmax(1) == y).float().mean()))
    assert reference.last.clients["test_acc"].tolist() == pytest.approx(client_accuracies, abs=1e-6)
    assert reference.last.metrics["clients/acc_mean"] == pytest.approx(np.mean(client_accuracies), abs=1e-6)
    assert reference.last.metrics["clients/acc_var"] == pytest.approx(
        np.var(100 * np.array(client_accuracies)), abs=1e-3
    )
    (accuracy,) = mean_over_samples(network, federation.test, np.array([7, 2]), [federation.targets.mark_correct])
    assert accuracy.tolist() == pytest.approx([client_accuracies[7], client_accuracies[2]], abs=1e-6)


def test_runs_of_different_selectors_share_data_and_initial_model(tmp_path: Path) -> None:
    # partition, noise, w_0 and, for the same (round, client), latency are common: the difference is the selector
    runs = [
        run_training(tmp_path / choice, f"selector={choice}", "cohort=8", "split.limit=240", "rounds=2")
        for choice in SELECTORS
    ]
    first = runs[0]
    for other_run in runs[1:]:
        assert np.array_equal(first.info.class_counts, other_run.info.class_counts)
        assert np.array_equal(first.info.noise_rate, other_run.info.noise_rate)
        assert first.reports[0].fingerprint == other_run.reports[0].fingerprint
        for report, other_report in zip(first.reports[1:], other_run.reports[1:], strict=True):
            common_ids = np.intersect1d(report.cohort, other_report.cohort)
            assert len(common_ids)
            assert np.array_equal(report.clients["finish_s"][common_ids], other_report.clients["finish_s"][common_ids])
    # local training of the first round starts from the same w_0: the same client reports the same loss, bit for bit
    for other_run in runs[1:]:
        common_ids = np.intersect1d(first.reports[1].cohort, other_run.reports[1].cohort)
        losses = [run.reports[1].clients["train_loss"][common_ids] for run in (first, other_run)]
        assert np.array_equal(*losses)


def test_data_seed_fixes_the_data_for_all_seeds(tmp_path: Path) -> None:
    a, b = run_training(tmp_path / "a", "data_seed=5"), run_training(tmp_path / "b", "data_seed=5", "seed=1")
    assert np.array_equal(a.info.class_counts, b.info.class_counts)
    assert a.cohorts != b.cohorts


def test_late_clients_are_dropped_and_partial_work_keeps_them(tmp_path: Path) -> None:
    overrides = ["deadline=fixed", "deadline.k=0.6", "client.epochs=5", "agg=scaffold", "split.limit=240"]
    dropped = run_training(tmp_path / "a", *overrides, "deadline.partial_work=false")
    partial = run_training(tmp_path / "b", *overrides, "deadline.partial_work=true")
    assert sum(len(r.arrived) for r in dropped.reports) < sum(len(r.cohort) for r in dropped.reports)
    assert sum(len(r.arrived) for r in partial.reports) > sum(len(r.arrived) for r in dropped.reports)
    units = np.concatenate([r.clients["units"] for r in partial.reports[1:]])
    assert {1.0, 5.0} & set(units[~np.isnan(units)]) != set()
    assert any(0 < u < 5 for u in units[~np.isnan(units)])


def test_a_round_lasts_until_its_slowest_client(reference: FinishedRun) -> None:
    clock = [report.metrics["time/virtual_s"] for report in reference.reports]
    slowest = [float(np.nanmax(report.clients["finish_s"])) for report in reference.reports[1:]]
    assert np.diff(clock).tolist() == pytest.approx(slowest)


def test_eval_every_and_clients_every_set_the_evaluated_rounds(tmp_path: Path) -> None:
    run = run_training(tmp_path, "rounds=5", "eval.every=2", "eval.clients_every=3")
    assert [r.step for r in run.reports if "test/acc" in r.metrics] == [0, 2, 4]
    assert [r.step for r in run.reports if "clients/acc_mean" in r.metrics] == [0, 3]


def clients_columns(run: FinishedRun) -> list[tuple[dict[str, float], np.ndarray, np.ndarray]]:
    """Of each report: metrics `clients/*`, the losses, the test accuracies."""
    client_metrics = [{name: v for name, v in r.metrics.items() if name.startswith("clients/")} for r in run.reports]
    return [(m, r.clients["loss"], r.clients["test_acc"]) for m, r in zip(client_metrics, run.reports, strict=True)]


def test_evaluating_a_sample_of_all_clients_equals_evaluating_all(reference: FinishedRun, tmp_path: Path) -> None:
    for count in (12, 500):
        run = run_training(tmp_path / str(count), f"eval.clients_sample={count}")
        np.testing.assert_equal(clients_columns(run), clients_columns(reference))


def test_a_sample_of_clients_is_the_same_in_every_round_and_under_every_selector(
    reference: FinishedRun, tmp_path: Path
) -> None:
    run, other_run = (
        run_training(tmp_path / choice, f"selector={choice}", "eval.clients_sample=5") for choice in ("random", "powd")
    )
    scored = np.flatnonzero(~np.isnan(run.reports[0].clients["loss"]))
    assert len(scored) == 5
    for report in (*run.reports, *other_run.reports):
        assert np.flatnonzero(~np.isnan(report.clients["loss"])).tolist() == scored.tolist()
    for result, full_report in zip(run.reports, reference.reports, strict=True):
        for column in ("loss", "test_acc"):
            np.testing.assert_equal(result.clients[column][scored], full_report.clients[column][scored])
        assert result.metrics["clients/loss_mean"] == pytest.approx(full_report.clients["loss"][scored].mean())
    other_seed = run_training(tmp_path / "seed", "seed=1", "eval.clients_sample=5")
    assert np.flatnonzero(~np.isnan(other_seed.reports[0].clients["loss"])).tolist() != scored.tolist()


def test_a_resumed_run_evaluates_the_same_sample(tmp_path: Path) -> None:
    full_report = run_training(tmp_path / "whole", "eval.clients_sample=5", "rounds=4")
    run_training(tmp_path / "parts", "eval.clients_sample=5", "rounds=2")
    resumed = run_training(tmp_path / "parts", "eval.clients_sample=5", "rounds=4", "resume=true")
    np.testing.assert_equal(clients_columns(resumed), clients_columns(full_report)[-2:])
    assert same_bits(full_report, resumed)


def test_non_finite_updates_of_diverging_clients_are_dropped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("fedcohort").propagate = True
    with caplog.at_level(logging.WARNING, "fedcohort"):
        run = run_training(tmp_path, "client.lr=1e30", "model=mlp", "rounds=1")
    assert np.isfinite(run.weights()).all()
    assert run.last.metrics["round/dropped_nonfinite"] > 0
    assert "are not finite, or longer than update_limit allows, and were excluded" in caplog.text


def test_updates_longer_than_update_limit_are_dropped(tmp_path: Path) -> None:
    """At lr 1e7 updates are finite, and about 1e7 gradients long: over 1e3 times any model."""
    run = run_training(tmp_path, "client.lr=1e7", "client.epochs=1", "model=mlp", "rounds=1", "update_limit=1000")
    start = run_training(tmp_path, "client.lr=1e-30", "model=mlp", "rounds=1")
    assert run.last.metrics["round/dropped_nonfinite"] == 4
    assert torch.equal(run.weights(), start.weights())


def test_an_integer_buffer_becomes_the_maximum_over_the_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An integer buffer becomes the maximum over a round's clients, who go on from the server's."""
    layers = [nn.Flatten(), nn.Linear(64, 10), nn.BatchNorm1d(10)]
    monkeypatch.setattr(build, "build_network", lambda *parts: nn.Sequential(*layers))
    run = run_training(tmp_path, "agg=fednova")
    most_steps = [int(np.nanmax(report.clients["signal_steps"])) for report in run.reports[1:]]
    state = torch.load(run.folder / "weights.pt", weights_only=True)
    assert min(most_steps) > 0
    assert int(state["2.num_batches_tracked"]) == sum(most_steps)


def _federation() -> Federation:
    composed = compose_overrides(*SMALL)
    federation: Federation = load_facts(composed).federation
    return federation


def _network(federation: Federation, run: FinishedRun) -> nn.Module:
    network: nn.Module = make_component("model", "logreg").build(
        tuple(federation.server_test.x.shape[1:]), federation.n_classes
    )
    network.load_state_dict(torch.load(run.folder / "weights.pt", weights_only=True))
    return network
