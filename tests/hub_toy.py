"""A Hugging Face hub that gives the tables of a folder, at a commit."""

from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset import hub

COMMIT = "0123456789" * 4


def at_commit(split: datasets.Dataset) -> datasets.Dataset:
    """The split, with the addresses of the files that the library has downloaded."""
    split.info.download_checksums = {f"hf://datasets/someone/data@{COMMIT}/train.parquet": {"num_bytes": 1}}
    return split


def give(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let the hub answer every name with the Parquet files of `folder`."""

    def load(path: str, **options: str) -> datasets.DatasetDict:
        tables = {file.stem: pq.read_table(file).to_pydict() for file in sorted(folder.glob("*.parquet"))}
        return datasets.DatasetDict(
            {part: at_commit(datasets.Dataset.from_dict(columns)) for part, columns in tables.items()}
        )

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(hub, "check_network", lambda: "")
