"""The data that all parts share, compared at both ends of a run."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedcohort.data.federation import Federation
from fedcohort.errors import ComponentError
from fedcohort.round.shared_data import SharedState
from federation_harness import make_federation


@pytest.mark.parametrize("part", ["train", "val", "test", "server_val", "server_test"])
def test_changed_inputs_and_labels_are_named(part: str) -> None:
    federation: Federation = make_federation()
    shared = SharedState(federation)
    shared.verify_unchanged(federation)
    getattr(federation, part).x[0] -= 0.5
    with pytest.raises(ComponentError, match=f"changed the shared data \\({part}.x\\)"):
        shared.verify_unchanged(federation)


def test_byte_inputs_and_proxy_data_are_compared() -> None:
    federation = replace(make_federation(), proxy=torch.zeros(4, 3, dtype=torch.uint8))
    shared = SharedState(federation)
    assert federation.proxy is not None
    federation.proxy[1, 1] = 3
    with pytest.raises(ComponentError, match="proxy"):
        shared.verify_unchanged(federation)


def test_a_draw_from_numpys_global_generator_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    federation, state = make_federation(), np.random.get_state()  # noqa: NPY002
    shared = SharedState(federation)
    with caplog.at_level(logging.WARNING, "fedcohort"):
        shared.verify_unchanged(federation)
        assert not caplog.messages
        np.random.random()  # noqa: NPY002
        shared.verify_unchanged(federation)
    np.random.set_state(state)  # noqa: NPY002
    assert "numpy's global generator" in caplog.text
