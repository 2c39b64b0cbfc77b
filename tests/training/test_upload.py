"""Uploads with tensors left out: which, by what chance, what the server makes of it, and what is refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from config_options import make_component
from engine_harness import make_federation, make_network, make_task, make_trainer
from fedcohort.errors import FedcohortError
from fedcohort.flat import Layout, TensorBlock
from fedcohort.rng import Draws
from fedcohort.round.workload import make_untimed_jobs, verify_selection
from fedcohort.training.upload import draw_tensor_masks, make_sent_layout
from fedcohort.types import Selection
from selector_harness import make_context

LAYOUT = Layout((TensorBlock("a", (2,), 0), TensorBlock("b", (1,), 2), TensorBlock("c", (2, 2), 3)), (), ())
NONE = make_component("codec", "none")
CONTEXT = make_context(cohort=2, n_clients=3)


def test_each_tensor_is_sent_with_its_probability() -> None:
    """.25 of 3 tensors over 4000 rounds, within 4 sigma; a client's draw doesn't depend on the others."""
    upload = np.array([0.25, 1.0])
    masks_per_round = [draw_tensor_masks(upload, np.array([0, 1]), LAYOUT, Draws(0, 2, t)) for t in range(4000)]
    assert all(masks[1] is None for masks in masks_per_round)
    share = np.mean(
        [masks[0] for masks in masks_per_round if masks[0] is not None], axis=0
    )  # all three stay in 1 of 64
    sigma = np.sqrt(0.25 * 0.75 / 4000)
    assert (np.abs(share - (0.25 - 1 / 64) / (1 - 1 / 64)) < 4 * sigma).all()
    single_masks = draw_tensor_masks(upload, np.array([0]), LAYOUT, Draws(0, 2, 7))
    assert np.array_equal(single_masks[0], masks_per_round[7][0])  # type: ignore[arg-type]
    assert draw_tensor_masks(None, np.array([0, 1]), LAYOUT, Draws(0, 2, 7)) == [None, None]


def test_a_codec_gets_the_layout_of_the_sent_tensors() -> None:
    sent_layout = make_sent_layout(LAYOUT, np.array([True, False, True]))
    assert [(b.name, b.offset) for b in sent_layout.parameters] == [("a", 0), ("c", 2)]
    assert NONE.bytes_up(sent_layout) == 4 * 6
    assert NONE.bytes_up(make_sent_layout(LAYOUT, np.zeros(3, bool))) == 0


@pytest.mark.parametrize("kind", ["ce", "flash_robust"])
def test_unsent_tensors_arrive_as_zero(kind: str) -> None:
    federation, network = make_federation(), make_network()
    trainer = make_trainer(federation, network, kind, epochs=1, batch=10)
    delta = trainer.train(make_task(1), {}).delta.clone()
    task = make_task(1)
    object.__setattr__(task, "tensor_mask", np.array([True, False, False, True]))
    masked_delta = trainer.train(task, {}).delta
    blocks = trainer.server.layout.parameters
    for block, is_kept in zip(blocks, task.tensor_mask, strict=True):
        assert torch.equal(
            block.make_view(masked_delta),
            block.make_view(delta) if is_kept else torch.zeros_like(block.make_view(delta)),
        )


def test_jobs_have_the_requested_units_and_upload_bytes() -> None:
    """4 bytes for each of 7, 5 or 0 numbers, and 9 further bytes; clients have different units of work."""
    selection = Selection(np.array([0, 2]), units=np.array([4, 1, 9]))
    jobs = make_untimed_jobs(selection, 5, LAYOUT, NONE, 9, Draws(0, 3, 0))
    assert (jobs.assigned.tolist(), jobs.bytes_up.tolist(), jobs.tensor_mask) == ([4, 9], [37.0, 37.0], [None, None])
    assert make_untimed_jobs(Selection(np.array([0, 2])), 5, LAYOUT, NONE, 9, Draws(0, 3, 0)).assigned.tolist() == [
        5,
        5,
    ]
    shares = Selection(np.array([1]), upload=np.array([1.0, 1e-9, 1.0]))
    assert make_untimed_jobs(shares, 5, LAYOUT, NONE, 9, Draws(0, 3, 0)).bytes_up.tolist() == [9.0]


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"units": np.array([1, 0, 1])}, "units of local work"),
        ({"units": np.array([1, 1])}, "units of local work"),
        ({"upload": np.array([1.0, 0.0, 1.0])}, "upload probabilities must be numbers in"),
        ({"upload": np.array([1.0, np.nan, 1.0])}, "upload probabilities must be numbers in"),
        ({"upload": np.array([1.0])}, "upload probabilities must be numbers in"),
    ],
)
def test_invalid_upload_requests_are_rejected(fields: dict[str, Any], match: str) -> None:
    with pytest.raises(FedcohortError, match=match):
        verify_selection(Selection(np.array([0, 1]), **fields), CONTEXT, NONE, carries_late_jobs=False)


def test_partial_uploads_reject_a_codec_that_changes_training() -> None:
    codec: Any = SimpleNamespace(hooks=(object(),))
    verify_selection(Selection(np.array([0, 1]), upload=np.ones(3)), CONTEXT, codec, carries_late_jobs=False)
    chosen = Selection(np.array([0, 1]), upload=np.array([1.0, 0.5, 1.0]))
    with pytest.raises(FedcohortError, match="choose codec=none"):
        verify_selection(chosen, CONTEXT, codec, carries_late_jobs=False)
