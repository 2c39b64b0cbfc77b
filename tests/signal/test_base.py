"""Every signal states its cost and the facts that it reveals; numbers by hand."""

import numpy as np
import pytest
import torch

from agg_harness import make_update
from case_loop import for_all
from fedcohort.errors import IncompatibleConfig, UndeclaredSignal
from fedcohort.signal.base import find_signal, list_signals
from fedcohort.types import Signals
from signal_kinds import find_measured, find_reported

SIGNALS = list_signals()


@for_all("name", SIGNALS)
def test_a_signal_declares_its_cost_and_what_it_reveals(name: str) -> None:
    signal = find_signal(name)
    assert signal.reveals
    assert signal.bytes_up >= 0


def test_an_unknown_signal_is_reported_with_the_existing_ones() -> None:
    with pytest.raises(IncompatibleConfig, match=r"no signal is called 'mood'; there are: .*loss"):
        find_signal("mood")


def test_path_average_and_spread_by_hand() -> None:
    # batches of 10, 10, 5 with mean losses 3, 2, 1: (30 + 20 + 5) / 25; the std over batches is unweighted
    update = make_update(
        0, [0.0], steps=3, batch_loss=np.array([3.0, 2.0, 1.0]), batch_size=np.array([10, 10, 5], dtype=np.int64)
    )
    assert find_reported("train_loss").read(update) == pytest.approx(2.2)
    assert find_reported("train_loss_std").read(update) == pytest.approx(np.sqrt(2 / 3))


def test_without_a_step_there_is_no_loss() -> None:
    update = make_update(0, [0.0], steps=0, batch_loss=np.empty(0), batch_size=np.empty(0, dtype=np.int64))
    assert np.isnan(find_reported("train_loss").read(update))
    assert np.isnan(find_reported("train_loss_std").read(update))


def test_the_robust_loss_of_the_current_model() -> None:
    # p = (.7, .2, .1), y = 0: CE .3566749, entropy .8018186, RCE 1.2 (selectors.md 6.6 b)
    logp = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64).log()
    value = find_measured("robust_loss").per_sample(logp, torch.tensor([0]), {"alpha": 0.1, "beta": 4.0, "A": -4.0})
    assert float(value) == pytest.approx(5.2368568, abs=1e-7)
    assert float(find_measured("loss").per_sample(logp, torch.tensor([0]), {})) == pytest.approx(0.3566749, abs=1e-7)


def test_undeclared_reads_raise() -> None:
    signals = Signals({"loss": 1, "duration": 2}, frozenset({"loss"}), "the selector")
    assert signals["loss"] == 1
    assert list(signals) == ["loss"]
    assert len(signals) == 1
    with pytest.raises(UndeclaredSignal, match=r"the selector reads the signal 'duration' but declares"):
        signals["duration"]


def test_the_symmetric_loss_by_hand() -> None:
    # p_y = .5: .1 ln 2 + ln(1e4) / 2 (aggregators.md B4)
    logp = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert float(find_measured("sce_loss").per_sample(logp, torch.tensor([0]), {})) == pytest.approx(
        4.6744849040, abs=1e-9
    )
