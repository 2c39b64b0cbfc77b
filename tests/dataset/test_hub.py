"""Datasets from the Hugging Face hub, without a network: the data, and the messages if the hub has none."""

import logging
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

from fake_hub import COMMIT, add_commit
from fedcohort.dataset import arrow_columns
from fedcohort.dataset import hub as module
from fedcohort.dataset.hub import check_network, hub_commit, load_hub_splits
from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError


def hub(name: str) -> list[Frame]:
    return load_hub_splits(name, ("train", "test"))


@pytest.fixture
def hub_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_network", lambda: "")


@pytest.mark.usefixtures("hub_library")
def test_tables_and_class_names_are_read_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = datasets.DatasetDict(
        {part: datasets.Dataset.from_dict({"label": [1, 0], "x": [[1, 2], [3, 4]]}) for part in ("train", "test")}
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda name: parts)
    train, _ = hub("someone/something")
    assert train.column("label").to_pylist() == [1, 0]
    assert train.read_arrays("x").tolist() == [[1, 2], [3, 4]]
    requests = [
        frame.origin for frame in load_hub_splits("someone/something", ("train",), optional_splits=("valid", "test"))
    ]
    assert requests == ["someone/something (train)", "someone/something (test)"], "a part that may be there, or not"
    del parts["test"]
    with pytest.raises(DataError, match=r"dataset.hub=someone/something has no split 'test'; it has train"):
        hub("someone/something")


@pytest.mark.usefixtures("hub_library")
@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("a/b", {}),
        ("a/b:letters", {"name": "letters"}),
        ("a/b@v1.0", {"revision": "v1.0"}),
        ("a/b:letters@v1.0", {"name": "letters", "revision": "v1.0"}),
    ],
)
def test_a_hub_address_may_name_configuration_and_revision(
    monkeypatch: pytest.MonkeyPatch, address: str, options: dict[str, str]
) -> None:
    requests: list[Any] = []

    def load(path: str, **kwargs: str) -> Any:
        requests.append((path, kwargs))
        raise ValueError("Config name is missing. Please pick one among the available configs: ['letters']")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(
        DataError, match=rf"^dataset.hub={address} can't be .*'letters'\]\); set dataset.hub=a/b:CONFIG"
    ):
        hub(address)
    assert requests == [("a/b", options)]


@pytest.mark.usefixtures("hub_library")
def test_array_columns_of_the_datasets_library_are_read_as_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    features = datasets.Features(
        {"x": datasets.Array2D((2, 3), "uint8"), "label": datasets.ClassLabel(names=["b", "a"])}
    )
    rows = {"x": np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "label": [0, 1]}
    part = datasets.Dataset.from_dict(rows, features=features)
    monkeypatch.setattr(datasets, "load_dataset", lambda name: datasets.DatasetDict(train=part, test=part))
    train, _ = hub("someone/something")
    np.testing.assert_array_equal(train.read_arrays("x"), rows["x"])
    keys = ("info", "features", "label", "names")
    assert arrow_columns.read_schema_json(train.table.schema, b"huggingface", *keys) == ["b", "a"]


@pytest.mark.usefixtures("hub_library")
@pytest.mark.parametrize(
    ("address", "commit"),
    [
        ("a/b", f"a/b@{COMMIT}"),
        ("a/b:letters", f"a/b:letters@{COMMIT}"),
        ("a/b@v1.0", f"a/b@{COMMIT}"),
        ("a/b:letters@v1.0", f"a/b:letters@{COMMIT}"),
    ],
)
def test_the_commit_of_the_loaded_hub_data_is_recorded(
    monkeypatch: pytest.MonkeyPatch, address: str, commit: str
) -> None:
    part = add_commit(datasets.Dataset.from_dict({"label": [0]}))
    monkeypatch.setattr(datasets, "load_dataset", lambda path, **options: datasets.DatasetDict(train=part, test=part))
    assert [frame.revision for frame in hub(address)] == [commit] * 2
    part.info.download_checksums = None
    assert hub(address)[0].revision == (f"{address.partition('@')[0]}@{address.partition('@')[2] or 'unknown'}")


def test_without_recorded_urls_the_commit_is_read_from_the_cache_folder(tmp_path: Path) -> None:
    """Folders of the cache: the name, the configuration, the version, the commit."""
    for folder, commit in (("0.0.0/" + COMMIT, COMMIT), ("0.0.0/0123abcd", "")):
        file = tmp_path / "a___b" / "default" / folder / "b-train.arrow"
        file.parent.mkdir(parents=True)
        with datasets.arrow_writer.ArrowWriter(path=str(file)) as writer:
            writer.write({"label": 0})
            writer.finalize()
        assert hub_commit(datasets.Dataset.from_file(str(file))) == commit


@pytest.mark.usefixtures("hub_library")
@pytest.mark.parametrize(
    "failure", [ConnectionError("no route"), FileNotFoundError("no such dataset"), ValueError("?"), LookupError("odd")]
)
def test_a_failed_hub_download_gives_one_line_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    def fail(name: str) -> None:
        logging.getLogger("some.library").error("retrying")
        raise failure

    monkeypatch.setattr(datasets, "load_dataset", fail)
    name = type(failure).__name__
    with pytest.raises(
        DataError, match=rf"^dataset.hub=a/b can't be loaded .*\({name}: .*set dataset.path to a folder"
    ):
        hub("a/b")
    logging.getLogger("some.library").error("afterwards")
    assert caplog.messages == ["afterwards"]


def test_without_a_network_the_cache_is_read_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "")  # so that it is as before afterwards
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(module, "check_network", lambda: "https://huggingface.co: no route")

    def fail(name: str) -> None:
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        raise ConnectionError("Couldn't reach it on the Hub (OfflineModeIsEnabled)")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(DataError, match=r"\(https://huggingface.co: no route\); without a network set dataset.path"):
        hub("a/b")


@pytest.mark.parametrize(
    ("error", "expected_text"),
    [
        (None, ""),
        (urllib.error.HTTPError("https://h", 405, "no HEAD here", None, None), ""),  # type: ignore[arg-type]
        (urllib.error.URLError(OSError("Name or service not known")), "https://h: Name or service not known"),
        (urllib.error.URLError(ssl.SSLError("whose certificate is this")), ""),
        (TimeoutError("timed out"), "https://h: timed out"),
    ],
)
def test_network_errors_of_the_hub_are_described(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception | None, expected_text: str
) -> None:
    def answer(request: Any, timeout: float) -> Any:
        assert (request.full_url, request.method, timeout) == ("https://h", "HEAD", module.CONNECTION_TIMEOUT_S)
        if error is not None:
            raise error
        return (tmp_path / "answer").open("w")

    monkeypatch.setenv("HF_ENDPOINT", "https://h")
    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert check_network() == expected_text
