"""dht: its result and its generators, and that the charged work is the work that is done."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedcohort.data import interaction
from fedcohort.signal.base import find_signal
from global_rng_guard import forbid_global_rng
from round_harness import run_without_files
from signal_kinds import UnimplementedAccess, count_passes, find_computed

OPTIONS: dict[str, Any] = {"q": 0.7, "epochs": 2, "lr": 0.1, "batch": 5, "seed": 3}


class Toy(UnimplementedAccess):
    """A lab of two clients with three classes, the second of whom has only two of them."""

    def __init__(self) -> None:
        draws = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
        self.x, self.y = draws, torch.arange(30) % 3
        self.y[20:][self.y[20:] == 2] = 0

    def samples(self, client: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = slice(0, 20) if client == 0 else slice(20, 30)
        return self.x[rows], self.y[rows]

    def copy(self) -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3))


def answers_of(clients: list[int], round: int = 4, **options: Any) -> np.ndarray:
    with torch.random.fork_rng():
        return find_computed("dht").compute(Toy(), round, np.array(clients), OPTIONS | options)


def test_a_client_reports_three_numbers_in_the_unit_interval() -> None:
    values = answers_of([0, 1])
    assert values.shape == (2, 3)
    assert values.dtype == np.float64
    assert ((values >= 0) & (values <= 1)).all()
    assert find_signal("dht").bytes_up * 3 == 12


def test_a_clients_answer_does_not_depend_on_the_other_clients() -> None:
    np.testing.assert_array_equal(answers_of([0, 1])[1], answers_of([1])[0])


def test_no_global_generator_is_read_or_moved() -> None:
    with forbid_global_rng():
        first = answers_of([0, 1])
    torch.manual_seed(99)
    np.testing.assert_array_equal(answers_of([0, 1]), first)


def test_the_class_imbalance_is_that_of_the_clients_labels() -> None:
    """20 samples of 3 classes are 7, 7, 6; CI needs no estimate."""
    p = np.array([7, 7, 6]) / 20
    assert answers_of([0])[0, 0] == pytest.approx(1 + (p * np.log(p)).sum() / np.log(3))


def test_the_charged_work_is_the_actual_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward passes over samples, a training step counted as three; the attribute classifier at most as charged."""
    passes_by_kind = {"trained": 0, "predicted": 0}
    fitted, predicted = interaction.train_network, interaction.predict_classes
    biased = interaction.mark_bias_aligned_samples

    def count_fit(network: Any, x: Any, *options: Any) -> Any:
        passes_by_kind["trained"] += 3 * OPTIONS["epochs"] * len(x)
        return fitted(network, x, *options)

    def count_predict(network: Any, x: Any) -> Any:
        passes_by_kind["predicted"] += len(x)
        return predicted(network, x)

    def count_biased_only(*args: Any) -> Any:
        result = biased(*args)
        passes_by_kind["biased"] = passes_by_kind["trained"]
        return result

    monkeypatch.setattr(interaction, "train_network", count_fit)
    monkeypatch.setattr(interaction, "predict_classes", count_predict)
    monkeypatch.setattr(interaction, "mark_bias_aligned_samples", count_biased_only)
    for client, counts in ((0, [7, 7, 6]), (1, [6, 4, 0])):
        passes_by_kind.update(trained=0, predicted=0)
        answers_of([client])
        n, models = sum(counts), sum(c > 0 for c in counts)
        (passes,) = count_passes("dht", OPTIONS, np.array([counts]))
        assert passes_by_kind["biased"] == 3 * 2 * models * n
        assert passes_by_kind["predicted"] in (n, 2 * n), "no attribute is predicted without a pivot"
        max_passes = passes_by_kind["biased"] + 3 * 2 * max(counts) + 2 * n
        assert passes * n == pytest.approx(max_passes)
        assert passes_by_kind["trained"] + passes_by_kind["predicted"] <= max_passes


def test_two_classes_need_one_biased_model() -> None:
    (passes,) = count_passes("dht", {"epochs": 5}, np.array([[30, 10]]))
    assert passes == 3 * 5 * (1 + 0.75) + 2


def test_a_run_queries_every_client_once_and_charges_it() -> None:
    """12 clients, 4 of which train: 8 more downloads of w_1 and 3 numbers from each; FLOPs and time as charged."""
    run = run_without_files("selector=feddiverse", "selector.epochs=1", "split.limit=600")
    probe = np.diff([report.metrics["comm/probe_bytes"] for report in run.reports])
    model = 4 * (64 * 10 + 10)
    assert probe.tolist() == [0, 8 * model + 12 * 12, 0]
    flops = np.diff([report.metrics["comp/client_flops"] for report in run.reports])[1]
    forward, n = 2 * 64 * 10, run.info.n_train
    trained = 3 * forward * 2 * n[run.reports[2].cohort].sum()
    passes = (flops - trained) / (forward * n.sum())
    assert 3 * (8 + 0.1) + 2 < passes < 3 * (10 + 1) + 2, "up to 10 classes, the largest a tenth at least"
    random = run_without_files("split.limit=600")
    virtual_s = [np.diff([report.metrics["time/virtual_s"] for report in r.reports])[1] for r in (run, random)]
    assert virtual_s[0] > 2 * virtual_s[1], "the round waits for the slowest estimate"
