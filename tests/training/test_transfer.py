"""How often the host waits for the device in a round: a constant number of times, whatever the cohort."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.round.collect import Collector
from fedcohort.round.collect_options import CollectorOptions
from fedcohort.training.dual import GramMatrixEngine
from fedcohort.training.engines import choose_engine
from fedcohort.training.passes import summarise_losses
from fedcohort.training.transfer import MAX_WAITING_BYTES_BY_DEVICE, copy_to_device

AT_MOST = 10  # per round
METHODS = ("cpu", "tolist")  # of tensors; reading a tensor on a CPU is no operation that a mode sees
OPERATIONS = {  # their result, or its shape, is known when the device has computed it
    "aten::_local_scalar_dense",  # item, float, int, bool
    "aten::nonzero",  # also of an index by booleans
    "aten::masked_select",
    "aten::equal",
    "aten::is_nonzero",
    "aten::_unique2",
    "aten::repeat_interleave",
}


class WaitCounter(TorchDispatchMode):
    """Counts what would let the host wait for a GPU, and what would be copied to a GPU."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        has_boolean_index = name == "aten::index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if name in OPERATIONS or has_boolean_index:
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


@contextmanager
def counted_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count in the block, where the CPU stands in for a GPU."""
    mode = WaitCounter()

    def count(name: str, function: Any) -> Any:
        def count_call(*args: Any, **kwargs: Any) -> Any:
            mode.counts[name] += 1
            return function(*args, **kwargs)

        return count_call

    with monkeypatch.context() as patch, mode:
        patch.setitem(MAX_WAITING_BYTES_BY_DEVICE, "cpu", MAX_WAITING_BYTES_BY_DEVICE["cuda"])
        for name in METHODS:
            patch.setattr(torch.Tensor, name, count(name, getattr(torch.Tensor, name)))
        patch.setattr(torch, "from_numpy", count("from_numpy", torch.from_numpy))
        yield mode.counts


CASES: dict[str, tuple[str, dict[str, Any]]] = {  # kind of the engine and options of the trainer
    "sequential chain": ("sequential", {"batch": 4}),
    "sequential autograd": ("sequential", {"batch": 4, "momentum": 0.9, "hooks": "scaffold"}),
    "chain of many clients": ("vectorised", {"batch": 4}),
    "vmap of many clients": ("vectorised", {"batch": 4, "clip": 0.1, "momentum": 0.9, "hooks": "scaffold"}),
    "objective with reference": ("vectorised", {"batch": 4, "objective": "flash_robust"}),
    "dual": ("auto", {"batch": 4}),
}


def wait_counts(case: str, cohort: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Train a cohort and collect its updates; return how often the host waits for the device."""
    kind, options = CASES[case]
    hooks = make_component("agg", "scaffold").hooks if "hooks" in options else ()
    network = nn.Linear(5, 3) if case == "dual" else make_network()
    trainer = make_trainer(make_federation(n=600, clients=12), network, **{**options, "hooks": hooks})
    if case in ("sequential autograd", "vmap of many clients"):
        trainer.chain = None
    engine, _ = choose_engine(kind, trainer, 4)
    assert isinstance(engine, GramMatrixEngine) == (case == "dual")
    p = trainer.server.layout.n_params
    uploads = [name for hook in hooks for name in hook.uploads]
    reports = {"loss": lambda update: float(update.batch_loss.mean())}
    clients = np.arange(cohort)
    collector = Collector(
        trainer.server.layout, clients, np.ones(cohort), CollectorOptions(upload_names=uploads, report_readers=reports)
    )
    tasks = [make_task(k, rows=np.arange(3 + k) if k % 2 else None) for k in range(cohort)]
    trainer.response(100, 0.1)  # reads a scalar of the host, once for all rounds with this learning rate
    with counted_waits(monkeypatch) as counts:
        for update in engine.train_clients(tasks, {"c": torch.ones(p)}):
            collector.add_client_update(update)
    assert collector.sum_over_ranks(lambda t: t, lambda t: t).clients.tolist() == clients.tolist()
    return counts


@pytest.mark.parametrize("case", CASES)
def test_the_number_of_device_synchronisations_does_not_grow_with_the_cohort(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many_clients = (wait_counts(case, cohort, monkeypatch) for cohort in (2, 12))
    assert few == many_clients, (few, many_clients)
    assert 0 < sum(many_clients.values()) <= AT_MOST, many_clients


def test_the_counter_detects_each_device_synchronisation(monkeypatch: pytest.MonkeyPatch) -> None:
    w = torch.ones(3)
    with counted_waits(monkeypatch) as counts:
        assert bool(w.sum() > 0)
        assert float(w[0]) + w[1].item() == 2
        assert len(w[w > 0]) == len(w.tolist()) == len(w.cpu())
    assert counts == {"aten::_local_scalar_dense": 3, "aten::index": 1, "tolist": 1, "cpu": 1}


def test_arrays_are_copied_in_their_shapes() -> None:
    arrays = [np.arange(6).reshape(2, 3), np.empty(0, np.int64), np.array([7])]
    copies = list(copy_to_device(arrays, torch.device("cpu")))
    assert [copy.tolist() for copy in copies] == [array.tolist() for array in arrays]
    assert {copy.dtype for copy in copies} == {torch.int32}
    assert list(copy_to_device([], torch.device("cpu"))) == []


def test_losses_are_summarised_by_mini_batch_and_by_sample() -> None:
    """Two passes over three of four samples; the loss of a sample is that of its first step with a number."""
    passes = [(np.array([2, 0, 1]), [(0, 2), (2, 3)]), (np.array([1, 2, 0]), [(0, 2)])]
    means, sizes, first = summarise_losses(4, passes, np.array([1.0, 2.0, np.nan, 4.0, 5.0]))
    np.testing.assert_array_equal(means, [1.5, np.nan, 4.5])
    assert sizes.tolist() == [2, 1, 2]
    np.testing.assert_array_equal(first, [2.0, 4.0, 1.0, np.nan])
    assert [part.tolist() for part in summarise_losses(1, [], np.empty(0))[:2]] == [[], []]
