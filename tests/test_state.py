"""States survive a checkpoint that torch loads with weights_only."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch

from fedcohort.errors import CheckpointError
from fedcohort.state import pack_state, unpack_state
from state_saving import save_and_restore


@dataclass(frozen=True)
class Inner:
    ids: np.ndarray
    when: int


@dataclass(frozen=True)
class State:
    v: torch.Tensor
    mask: np.ndarray
    pending: Inner | None
    pair: tuple[Inner, float]
    table: dict[int, Inner]
    names: list[str] = field(default_factory=list)


def state(pending: Inner | None) -> State:
    inner = Inner(np.array([3, 1]), 7)
    v = torch.arange(3, dtype=torch.float64)
    return State(v, np.array([True, False]), pending, (inner, float("nan")), {4: inner}, ["a"])


@pytest.mark.parametrize("pending", [None, Inner(np.array([2.5]), 1)])
def test_a_state_survives_a_round_trip(tmp_path: Path, pending: Inner | None) -> None:
    torch.save(pack_state(state(pending)), tmp_path / "x")
    restored = unpack_state(torch.load(tmp_path / "x", weights_only=True), State)
    assert torch.equal(restored.v, torch.arange(3, dtype=torch.float64))
    assert restored.mask.dtype == bool
    assert restored.mask.tolist() == [True, False]
    assert isinstance(restored.pair[0], Inner)
    assert np.isnan(restored.pair[1])
    assert restored.table[4].ids.tolist() == [3, 1]
    assert restored.names == ["a"]
    assert (restored.pending is None) if pending is None else restored.pending.ids.tolist() == [2.5]


@dataclass(frozen=True)
class Numbers:
    mean: float
    name: str
    flag: bool
    rounds: list[int]


def test_numpy_scalars_come_back_as_python_numbers() -> None:
    """np.float64 is a float and np.str_ a str, but a checkpoint that holds one as it is can't be loaded."""
    restored = save_and_restore(Numbers(np.float64(0.1), np.str_("a"), np.bool_(True), [np.int64(3), np.float32(2)]))  # type: ignore[arg-type, list-item]
    assert restored == Numbers(0.1, "a", True, [3, 2])
    assert [type(value) for value in (restored.mean, restored.name, restored.flag, *restored.rounds)] == [
        float,
        str,
        bool,
        int,
        float,
    ]


@dataclass(frozen=True)
class Collections:
    past: tuple[Inner, ...]
    late_records: tuple[Inner, ...] | None = None
    by_name: dict[str, Inner] | None = None


@pytest.mark.parametrize("length", range(4))
def test_records_in_tuples_of_any_length_are_restored(length: int) -> None:
    subset = tuple(Inner(np.array([n]), n) for n in range(length))
    restored = save_and_restore(Collections(subset, subset, {str(inner.when): inner for inner in subset}))
    for result in (restored.past, restored.late_records, restored.by_name.values()):
        assert [(type(inner), inner.when) for inner in result] == [(Inner, n) for n in range(length)]
    assert save_and_restore(Collections(subset)).late_records is None


def test_unsupported_types_are_rejected() -> None:
    with pytest.raises(TypeError, match="a State can't hold a function"):
        pack_state(lambda: None)


def test_unexpected_fields_are_named() -> None:
    with pytest.raises(CheckpointError, match=r"Inner has the fields \['ids', 'when'\], the checkpoint \['ids'\]"):
        unpack_state({"record": {"ids": 1}}, Inner)


@dataclass(frozen=True)
class OtherRecord:
    name: str


@dataclass(frozen=True)
class Either:
    part: Inner | OtherRecord


@pytest.mark.parametrize("part", [Inner(np.array([1]), 2), OtherRecord("b")])
def test_the_fields_determine_which_record_is_restored(part: Inner | OtherRecord) -> None:
    assert type(unpack_state(pack_state(Either(part)), Either).part) is type(part)
    with pytest.raises(CheckpointError, match=r"Inner has the fields \['ids', 'when'\], the checkpoint \['age'\]"):
        unpack_state({"record": {"part": {"record": {"age": 1}}}}, Either)


def test_the_arrays_are_copies() -> None:
    original = np.zeros(2)
    packed = pack_state(original)
    original[0] = 5
    assert unpack_state(packed).tolist() == [0, 0]
