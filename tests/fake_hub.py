"""A substitute for the Hugging Face hub that returns the tables of a folder at a fixed commit."""

from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from fedcohort.dataset import hub

COMMIT = "0123456789" * 4


def add_commit(split: datasets.Dataset) -> datasets.Dataset:
    """Return the split with the download addresses that the library records."""
    split.info.download_checksums = {f"hf://datasets/someone/data@{COMMIT}/train.parquet": {"num_bytes": 1}}
    return split


def serve_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make the hub return the Parquet files of `folder` for every dataset name."""

    def load(path: str, **options: str) -> datasets.DatasetDict:
        tables = {file.stem: pq.read_table(file).to_pydict() for file in sorted(folder.glob("*.parquet"))}
        return datasets.DatasetDict(
            {part: add_commit(datasets.Dataset.from_dict(columns)) for part, columns in tables.items()}
        )

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(hub, "check_network", lambda: "")
