"""Reading a dataset of the Hugging Face hub: quiet, and quick to say that there is no network."""

import logging
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

TIMEOUT_S = 10
LONGEST = 160  # characters of another library's reason


def hub(name: str) -> tuple[Frame, Frame]:
    """The splits `train` and `test` of a dataset of the Hugging Face hub (option dataset.hub)."""
    train, test = splits(name, ("train", "test"))
    return train, test


def splits(name: str, wanted: Sequence[str], perhaps: Sequence[str] = ()) -> list[Frame]:
    """The named splits of a dataset of the Hugging Face hub (option dataset.hub); of `perhaps` those that it has."""
    if obstacle := out_of_reach():  # the cache, or nothing: the library would try again for half a minute
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset  # imports torch

    try:
        with silent("huggingface_hub", "datasets", "httpx", "httpx2", "fsspec"):
            parts = load_dataset(name)
    except Exception as error:  # those of the libraries below it have no common base
        reason = obstacle or f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}"
        raise DataError(
            f"dataset.hub={name} can't be loaded from the Hugging Face hub ({reason}); without a network set "
            "dataset.path to a folder that holds train.parquet and test.parquet"
        ) from error
    missing = [part for part in wanted if part not in parts]
    if missing:
        raise DataError(f"dataset.hub={name} has no split {missing[0]!r}; it has {', '.join(parts)}")
    found = [*wanted, *(part for part in perhaps if part in parts)]
    return [Frame(f"{name} ({part})", parts[part].with_format("arrow")[:], "dataset.hub") for part in found]


def out_of_reach() -> str:
    """Why the hub can't be reached, "" where it answers, whatever it says."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return ""
    except OSError as error:
        cause = getattr(error, "reason", error)
        return (
            "" if isinstance(cause, ssl.SSLError) else f"{endpoint}: {cause}"
        )  # certificates are the library's affair
    return ""


@contextmanager
def silent(*libraries: str) -> Iterator[None]:
    """Keep the libraries from logging: what goes wrong is raised, and said once by us."""
    loggers = [logging.getLogger(name) for name in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
