"""A damaged file of the per-client table is named with its round, by whichever check it has."""

import os
from pathlib import Path

import numpy as np
import pytest

from fedcohort.errors import DamagedFile
from fedcohort.record import client_files, client_table


def write(folder: Path, *steps: int) -> dict[int, str]:
    columns = {"selected": np.ones(12, dtype=bool), "loss": np.linspace(0, 1, 12)}
    return {step: client_table.write_rows(folder, step, columns) for step in steps}


def test_damaged_swapped_or_missing_files_are_found(tmp_path: Path) -> None:
    tables = write(tmp_path, 1, 2, 3, 4)
    assert not client_files.find_damaged_steps(tmp_path, tables)
    os.replace(client_files.path_of_step(tmp_path, 2), client_files.path_of_step(tmp_path, 3))
    data = client_files.path_of_step(tmp_path, 4).read_bytes()
    client_files.path_of_step(tmp_path, 4).write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
    damage = client_files.find_damaged_steps(tmp_path, tables)
    assert sorted(damage) == [2, 3, 4]
    assert "000002.parquet, the per-client table of round 2, is missing" in damage[2]
    assert "000003.parquet, the per-client table of round 3, is not what was written" in damage[3]
    with pytest.raises(DamagedFile, match="round 3, is not what was written"):
        client_table.merge_step_files(tmp_path, {1, 3}, tables)
    assert client_files.path_of_step(tmp_path, 1).exists()


def test_a_file_without_a_digest_must_be_readable_and_of_its_round(tmp_path: Path) -> None:
    """As in older versions."""
    write(tmp_path, 1, 2)
    assert not client_files.find_damaged_steps(tmp_path, {1: None, 2: None, 3: None})
    os.replace(client_files.path_of_step(tmp_path, 2), client_files.path_of_step(tmp_path, 1))
    client_files.path_of_step(tmp_path, 2).write_bytes(b"PAR1")
    assert sorted(client_files.find_damaged_steps(tmp_path, {1: None, 2: None})) == [1, 2]
