"""Read a dataset of the Hugging Face hub, with one error message and a quick check of the network.

dataset.hub=user/data   user/data:configuration   user/data@revision   user/data:configuration@revision

The commit that was read is in `Frame.revision`, and in a run's info.json.
"""

import logging
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

TIMEOUT_S = 10
LONGEST = 160  # characters of another library's reason
NAME = re.compile(r"(?P<path>[^:@]+)(:(?P<name>[^:@]+))?(@(?P<revision>[^:@]+))?")
COMMIT = re.compile(r"[@/]([0-9a-f]{40})(?=/)")
WITHOUT = "without a network set dataset.path to a folder that holds train.parquet and test.parquet"


def splits(name: str, required: Sequence[str], perhaps: Sequence[str] = ()) -> list[Frame]:
    """Return the required splits of a dataset of the hub (option dataset.hub), and the optional ones that it has."""
    match = NAME.fullmatch(name)
    path, options = (match["path"], match.groupdict()) if match else (name, {})
    named = {option: options[option] for option in ("name", "revision") if options.get(option)}
    if obstacle := out_of_reach():  # the cache, or nothing: the library would try again for half a minute
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset  # imports torch

    try:
        with silent("huggingface_hub", "datasets", "httpx", "httpx2", "fsspec"):
            parts = load_dataset(path, **named)
    except Exception as error:  # those of the libraries below it have no common base
        reason = obstacle or f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}"
        way_out = f"say dataset.hub={path}:CONFIGURATION" if "onfig name is missing" in reason else WITHOUT
        raise DataError(
            f"dataset.hub={name} can't be loaded from the Hugging Face hub ({reason}); {way_out}"
        ) from error
    missing = [part for part in required if part not in parts]
    if missing:
        raise DataError(f"dataset.hub={name} has no split {missing[0]!r}; it has {', '.join(parts)}")
    present = [*required, *(part for part in perhaps if part in parts)]
    return [_frame(name, part, parts[part]) for part in present]


def _frame(name: str, part: str, split: Any) -> Frame:  # noqa: ANN401  datasets has no types
    """Return a split as a table. name: the option's value."""
    resolved = f"{name.partition('@')[0]}@{commit_of(split) or name.partition('@')[2] or 'unknown'}"
    return Frame(f"{name} ({part})", plain(split.with_format("arrow")[:]), "dataset.hub", revision=resolved)


def commit_of(split: Any) -> str:  # noqa: ANN401  datasets has no types
    """Return the commit of the hub that a split was read from, "" if the `datasets` library doesn't have it.

    It is in the addresses of the downloads, where these were noted, and in the name of the cache folder.
    """
    addresses = [*(split.info.download_checksums or {}), *(file["filename"] for file in split.cache_files)]
    commits_of_addresses = [COMMIT.findall(address.replace(os.sep, "/")) for address in addresses]
    return next((str(commits[-1]) for commits in commits_of_addresses if commits), "")


def plain(table: Any) -> Any:  # noqa: ANN401  pyarrow has no types
    """Return the table with lists in place of the `datasets` library's array types (Array2D, Array3D)."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        if isinstance(field.type, pa.ExtensionType):
            lists = pa.chunked_array(
                [chunk.storage for chunk in table.column(position).chunks], field.type.storage_type
            )
            table = table.set_column(position, field.name, lists)
    return table


def out_of_reach() -> str:
    """Return why the hub can't be reached; "" if it answers a request, also with an error."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return ""
    except OSError as error:
        cause = getattr(error, "reason", error)
        return (
            "" if isinstance(cause, ssl.SSLError) else f"{endpoint}: {cause}"
        )  # the library reports problems of certificates
    return ""


@contextmanager
def silent(*libraries: str) -> Iterator[None]:
    """Keep the libraries from logging: an error is raised, and one message describes it."""
    loggers = [logging.getLogger(name) for name in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
