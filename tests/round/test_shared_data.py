"""The data that all parts share, compared at both ends of a run."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedcohort.data.federation import Federation
from fedcohort.errors import ComponentError
from fedcohort.round.shared_data import SharedDataState, _sum_tensor_bits
from federation_harness import make_federation


@pytest.mark.parametrize("part", ["train", "val", "test", "server_val", "server_test"])
def test_changed_inputs_and_labels_are_named(part: str) -> None:
    federation: Federation = make_federation()
    shared = SharedDataState(federation)
    shared.verify_data_unchanged(federation)
    getattr(federation, part).x[0] -= 0.5
    with pytest.raises(ComponentError, match=f"changed the shared data \\({part}.x\\)"):
        shared.verify_data_unchanged(federation)


def test_byte_inputs_and_proxy_data_are_compared() -> None:
    federation = replace(make_federation(), proxy=torch.zeros(4, 3, dtype=torch.uint8))
    shared = SharedDataState(federation)
    assert federation.proxy is not None
    federation.proxy[1, 1] = 3
    with pytest.raises(ComponentError, match="proxy"):
        shared.verify_data_unchanged(federation)


def test_a_draw_from_numpys_global_generator_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    federation, state = make_federation(), np.random.get_state()  # noqa: NPY002
    shared = SharedDataState(federation)
    with caplog.at_level(logging.WARNING, "fedcohort"):
        shared.verify_data_unchanged(federation)
        assert not caplog.messages
        np.random.random()  # noqa: NPY002
        shared.verify_data_unchanged(federation)
    np.random.set_state(state)  # noqa: NPY002
    assert "numpy's global generator" in caplog.text


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (3, 2, 1, 0)])
def test_a_sum_of_bits_does_not_depend_on_the_order_in_memory(order: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 255, (5, 3, 3, 2), dtype=np.uint8)  # 90 bytes, which are no whole words of eight
    assert _sum_tensor_bits(torch.from_numpy(values).permute(order)) == values.sum()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read and reset in /proc")
def test_a_sum_of_bits_takes_little_memory_for_inputs_in_any_layout() -> None:
    images = torch.zeros(2000, 3, 32, 33).contiguous(memory_format=torch.channels_last)[:, :, :, 1:]

    def read_peak_bytes() -> int:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0])

    _sum_tensor_bits(images[:100])  # loads what torch needs
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts at the present memory
    peak_bytes = read_peak_bytes()
    _sum_tensor_bits(images)
    assert read_peak_bytes() - peak_bytes < images.nbytes  # a conversion of all inputs takes twice as much
