"""Inputs that are put into order where they stand are those that copies would be."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from config_options import make_component
from fedcohort.data.federation import Federation
from fedcohort.dataset.base import Raw
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation


def raw(shape: tuple[int, ...]) -> Raw:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, *shape)).astype(np.float32)
    owner = rng.permutation(np.repeat(np.arange(15), 20))
    y = np.arange(300) % 4
    return Raw("toy", x, y, x[:50].copy(), y[:50].copy(), 4, owner)


def built(data: Raw, clients: int | None) -> Federation:
    parts = (make_component("partition", "natural"), make_component("label_noise", "beta", a=2.0))
    return build_federation(data, SplitOptions(*parts, seed=1, clients=clients, server_val=0.1, client_val=0.2))


@pytest.mark.parametrize("shape", [(7,), (1,), (3, 4, 2)])
@pytest.mark.parametrize("clients", [None, 9])
def test_owned_inputs_are_not_copied(shape: tuple[int, ...], clients: int | None) -> None:
    data, own_data = raw(shape), raw(shape)
    copied, reused = built(data, clients), built(replace(own_data, single_use=True), clients)
    for part in ("train", "val", "test", "server_val", "server_test"):
        copied_part, reused_part = getattr(copied, part), getattr(reused, part)
        for field in fields(copied_part):
            assert np.array_equal(getattr(copied_part, field.name), getattr(reused_part, field.name)), (
                part,
                field.name,
            )
    assert np.array_equal(data.train_x, raw(shape).train_x)  # the raw data stay unchanged
    shared = (
        torch.from_numpy(own_data.train_x).untyped_storage().data_ptr() == reused.train.x.untyped_storage().data_ptr()
    )
    assert shared == (clients is None)  # the rows of those who take no part are not kept
    assert np.array_equal(data.train_y, raw(shape).train_y)
    label_address = torch.from_numpy(own_data.train_y).untyped_storage().data_ptr()
    assert (label_address == reused.train.true_y.untyped_storage().data_ptr()) == (clients is None)


@pytest.mark.parametrize("reason", ["read-only", "the test part is a piece of it"])
def test_shared_inputs_are_copied(reason: str) -> None:
    data, before = raw((7,)), raw((7,)).train_x
    if reason == "read-only":
        data.train_x.flags.writeable = False
    else:
        data = replace(data, test_x=data.train_x[:50])
    assert torch.equal(built(replace(data, single_use=True), None).train.x, built(raw((7,)), None).train.x)
    assert np.array_equal(data.train_x, before)


def test_labels_shared_with_the_test_part_are_copied() -> None:
    data, before = raw((7,)), raw((7,)).train_y
    data = replace(data, test_y=data.train_y[:50], single_use=True)
    assert torch.equal(built(data, None).train.true_y, built(raw((7,)), None).train.true_y)
    assert np.array_equal(data.train_y, before)
