"""step_projection: numbers by hand, tensors without a step, and the tensors of a network."""

import numpy as np
import pytest
import torch

from engine_harness import make_federation, make_network, make_trainer
from fedcohort.training.evaluate import SignalMeasurer
from selector_harness import TwoLayers
from signal_kinds import UnimplementedAccess, find_derived


class OneLayer(UnimplementedAccess):
    def copy(self) -> torch.nn.Module:
        return torch.nn.Linear(2, 1, bias=False)


def project(updates: list[list[float]], weights: list[float], lab: UnimplementedAccess) -> list[float]:
    result: list[float] = (
        find_derived("step_projection").make(lab, torch.tensor(updates))(np.array(weights, float)).tolist()
    )
    return result


def test_projections_by_hand() -> None:
    """G = 3 (1, 0) + 2 (0, 2) = (3, 4) has length 5: (3, 8, -25) / 5. The third tensor has G = 6 - 2 = 4."""
    updates = [[1.0, 0.0], [0.0, 2.0], [-3.0, -4.0]]
    assert project(updates, [3, 2, 0], OneLayer()) == pytest.approx([0.6, 1.6, -5])
    assert project(updates, [30, 20, 0], OneLayer()) == pytest.approx([0.6, 1.6, -5]), "only the direction counts"
    two_layer_updates = [[*update, value] for update, value in zip(updates, (2.0, -1.0, 5.0), strict=True)]
    assert project(two_layer_updates, [3, 2, 0], TwoLayers()) == pytest.approx(
        [(0.6 + 2) / 2, (1.6 - 1) / 2, (-5 + 5) / 2]
    )


def test_tensors_without_a_step_are_left_out() -> None:
    """The second tensor has G = 3 x 2 - 2 x 3 = 0."""
    updates = [[1.0, 0.0, 2.0], [0.0, 2.0, -3.0], [-3.0, -4.0, 5.0]]
    assert project(updates, [3, 2, 0], TwoLayers()) == pytest.approx([0.6, 1.6, -5])
    assert np.isnan(project(updates, [0, 0, 0], TwoLayers())).all()
    assert np.isnan(project([[1.0, 0.0, 2.0], [1.0, 0.0, float("nan")]], [1, 1], TwoLayers())).all()


def test_layers_are_the_tensors_of_the_network() -> None:
    trainer = make_trainer(federation := make_federation(), make_network(), epochs=1, batch=10)
    lab = SignalMeasurer(trainer.server, trainer.worker, federation, trainer.train_whole_job)
    updates = torch.stack([trainer.train_whole_job(4, k).delta.double() for k in range(3)])
    weights = np.array([0.5, 0.2, 0.3])
    step = torch.from_numpy(weights) @ updates
    blocks = trainer.server.layout.parameters
    expected = [
        np.mean(
            [
                float((b.make_view(u) * b.make_view(step)).sum() / b.make_view(step).norm())
                for b in blocks
                if b.make_view(step).any()
            ]
        )
        for u in updates
    ]
    assert len(blocks) == 4
    np.testing.assert_allclose(find_derived("step_projection").make(lab, updates)(weights), expected, rtol=1e-10)
