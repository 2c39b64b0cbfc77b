"""Clients of few rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.errors import DataError, OptionError
from fedcohort.label_noise.none import NoNoise
from fedcohort.partition.natural import Natural
from fedcohort.startup.assign import SplitOptions
from fedcohort.startup.split import build_federation
from folder_tables import make_folder_dataset, write_part
from optional_values import not_none

KINDS: dict[str, Any] = {"seed": 0, "clients": None, "server_val": 0.05, "client_val": 0.1}


def write_clients(path: Path, sizes: list[int]) -> None:
    client_ids = [f"c{k}" for k, size in enumerate(sizes) for _ in range(size)]
    n = len(client_ids)
    for part in ("train", "test"):
        write_part(path, part, x=np.arange(n) / n, who=client_ids, label=np.arange(n) % 2)


def test_small_clients_are_left_out(tmp_path: Path) -> None:
    write_clients(tmp_path, [20, 1, 2, 30])
    raw = make_folder_dataset(tmp_path, client="who", min_client_samples=5).load(0)
    assert np.bincount(not_none(raw.train_owner))[[0, 3]].tolist() == [20, 30]
    assert "2 clients with fewer than 5 samples left out" in raw.inputs
    assert build_federation(raw, SplitOptions(Natural(), NoNoise(), **KINDS)).n_clients == 2
    with pytest.raises(DataError, match=r"no client has 31 samples, the largest has 30; dataset.pool_small=true"):
        make_folder_dataset(tmp_path, client="who", min_client_samples=31).load(0)


def test_a_cut_test_part_leaves_every_client_its_smallest_number_of_samples(tmp_path: Path) -> None:
    """40 clients of 13 rows, one of each class: a fifth of all rows is cut, but at most 3 rows of a client."""
    n_clients, n_classes = 40, 13
    clients = [f"c{k:02}" for k in range(n_clients) for _ in range(n_classes)]
    x = np.arange(len(clients)) / len(clients)
    write_part(tmp_path, "train", x=x, who=clients, label=np.tile(np.arange(n_classes), n_clients))
    raw = make_folder_dataset(tmp_path, client="who", min_client_samples=10, test_share=0.2).load(0)
    train_sizes, test_sizes = np.bincount(not_none(raw.train_owner)), np.bincount(not_none(raw.test_owner))
    assert (train_sizes + test_sizes == n_classes).all()
    assert train_sizes.min() == 10
    assert test_sizes.sum() == 104  # a fifth of 520


def test_small_clients_are_pooled_in_the_order_of_their_names(tmp_path: Path) -> None:
    write_clients(tmp_path, [3, 20, 2, 1, 4, 2])
    raw = make_folder_dataset(tmp_path, client="who", min_client_samples=5, pool_small=True).load(0)
    assert np.bincount(not_none(raw.train_owner)).tolist() == [5, 20, 7]
    assert np.bincount(not_none(raw.test_owner)).tolist() == [5, 20, 7]
    assert raw.owner_names == ("c0 + 1 more", "c1", "c3 + 2 more")
    assert "5 clients with fewer than 5 samples pooled to 2" in raw.inputs


def test_many_clients_of_three_rows_are_rejected_with_a_remedy_and_pooled(tmp_path: Path) -> None:
    write_clients(tmp_path, [3] * 2000)
    with pytest.raises(
        DataError,
        match=r"clients with more than 3 .*dataset.min_client_samples=10 .*pool_small=true",
    ):
        build_federation(
            make_folder_dataset(tmp_path, client="who").load(0), SplitOptions(Natural(), NoNoise(), **KINDS)
        )
    (tmp_path / "test.parquet").rename(tmp_path / "other")
    with pytest.raises(
        DataError, match=r"too few rows of each class and client .* 6000; dataset.min_client_samples=10"
    ):
        make_folder_dataset(tmp_path, client="who", test_share=0.2).load(0)
    (tmp_path / "other").rename(tmp_path / "test.parquet")
    pooled = make_folder_dataset(tmp_path, client="who", min_client_samples=10, pool_small=True).load(0)
    assert build_federation(pooled, SplitOptions(Natural(), NoNoise(), **KINDS)).n_clients == 500
    (tmp_path / "test.parquet").unlink()
    pooled_data = make_folder_dataset(
        tmp_path, client="who", min_client_samples=10, pool_small=True, test_share=0.2
    ).load(0)
    assert "fewer than 13 samples pooled to 400 (10 remain after the test part is cut)" in pooled_data.inputs


def test_pools_that_cannot_be_filled_are_rejected(tmp_path: Path) -> None:
    write_clients(tmp_path, [20, 1, 2])
    with pytest.raises(DataError, match=r"the 2 clients with fewer than 5 training samples have 3 together"):
        make_folder_dataset(tmp_path, client="who", min_client_samples=5, pool_small=True).load(0)
    with pytest.raises(OptionError, match=r"min_client_samples must be an integer in \[3, inf\) where pool_small=true"):
        make_folder_dataset(tmp_path, pool_small=True)
