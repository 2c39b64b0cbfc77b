"""Runs share the digits (`shared_digits`), and change none of them."""

import dataclasses
from typing import Any

import numpy as np
import torch

import shared_digits
from fedcohort.data.federation import Federation
from fedcohort.startup import components, load
from round_harness import run_small
from run_harness import compose_overrides

DATA = ("clients=6", "split.limit=240", "heterogeneity=noise15", "feature_noise=gaussian")


def list_arrays(value: Any) -> list[np.ndarray]:
    """Return copies of all arrays in a federation."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return [np.array(value)]
    if dataclasses.is_dataclass(value):
        return [array for field in dataclasses.fields(value) for array in list_arrays(getattr(value, field.name))]
    return []


def test_runs_share_the_data_and_change_none() -> None:
    composition = compose_overrides(*DATA)
    parts = {group: components.make_component(composition, group) for group in load.DATA_GROUPS}
    shared = load.load_federation(composition, parts)
    assert isinstance(shared, Federation)
    assert load.load_federation(composition, parts) is shared
    other_seed = compose_overrides(*DATA, "data_seed=1")
    assert load.load_federation(other_seed, parts) is not shared
    work = ("cohort=4", "rounds=2", "client.epochs=1", "proxy=client_heldout", "augmentation=crop_flip")
    for method in (
        ("attack=label_flip", "attack.fraction=0.5", "selector=oracle_greedy"),
        ("agg=feddf", "agg.steps=2", "deadline=fixed", "samples=random"),
    ):
        run_small(*DATA, *work, *method)
    for array, fresh in zip(
        list_arrays(shared), list_arrays(shared_digits._load_federation(composition, parts)), strict=True
    ):
        np.testing.assert_array_equal(array, fresh)
