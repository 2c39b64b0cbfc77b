"""Any objective of single targets is one of samples with a target for each place."""

from typing import Any

import pytest
import torch

from fedcohort.data.targets import NOTHING, ONE_CLASS, Positions
from fedcohort.training.positions import on
from yaml_words import make, words

PLACES = Positions((0, 1))


@pytest.fixture(params=words("objective"))
def objective(request: pytest.FixtureRequest) -> Any:
    return make("objective", request.param)


def test_one_class_keeps_its_objective(objective: Any) -> None:
    assert on(ONE_CLASS, objective) is objective


def test_a_sample_is_the_mean_of_its_places_by_themselves(objective: Any) -> None:
    draws = torch.Generator().manual_seed(0)
    logits, reference = torch.randn(3, 4, 5, generator=draws), torch.randn(3, 4, 5, generator=draws).softmax(2)
    y = torch.tensor([[0, 1, 2, 3], [4, NOTHING, 2, NOTHING], [NOTHING, NOTHING, NOTHING, 1]])
    whole = on(PLACES, objective)
    assert (whole.plain, whole.uses_reference, whole.reach) == (False, objective.uses_reference, objective.reach)
    value, plain = whole.per_sample(logits, y, reference if whole.uses_reference else None)
    for j in range(3):
        there = y[j] > NOTHING
        z = reference[j, there] if whole.uses_reference else None
        alone, entropy = objective.per_sample(logits[j, there], y[j, there], z)
        assert float(value[j]) == pytest.approx(float(alone.mean()), rel=1e-5)
        assert float(plain[j]) == pytest.approx(float(entropy.mean()), rel=1e-5)
    assert torch.equal(whole.outer(value.mean()), objective.outer(value.mean()))
