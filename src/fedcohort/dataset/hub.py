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
from collections.abc import Sequence
from typing import Any

from fedcohort.dataset.table import Frame
from fedcohort.errors import DataError

CONNECTION_TIMEOUT_S = 10
MAX_REASON_LENGTH = 160  # characters of another library's reason
HUB_NAME_PATTERN = re.compile(r"(?P<path>[^:@]+)(:(?P<name>[^:@]+))?(@(?P<revision>[^:@]+))?")
COMMIT_PATTERN = re.compile(r"[@/]([0-9a-f]{40})(?=/)")
OFFLINE_REMEDY = "without a network set dataset.path to a folder that holds train.parquet and test.parquet"


def load_hub_splits(name: str, required_splits: Sequence[str], optional_splits: Sequence[str] = ()) -> list[Frame]:
    """Return splits of a dataset on the Hugging Face hub as tables, in the order of their names in the arguments.

    Args:
        name: value of the option `dataset.hub`, such as user/data:configuration@revision.
        required_splits: names of the splits that the dataset must have.
        optional_splits: names of the splits that are added to the result if the dataset has them.

    Raises:
        DataError: the dataset can't be loaded, or lacks a required split.
    """
    name_match = HUB_NAME_PATTERN.fullmatch(name)
    repository, name_parts = (name_match["path"], name_match.groupdict()) if name_match else (name, {})
    load_dataset_options = {
        name_part: part_text for name_part, part_text in name_parts.items() if part_text and name_part != "path"
    }
    if network_problem := check_network():  # use the cache: the library would repeat its requests for half a minute
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset  # imports torch

    logging.disable()  # an error is raised, and one message describes it
    try:
        hub_splits = load_dataset(repository, **load_dataset_options)
    except Exception as error:  # the errors of the libraries have no common base class
        reason = network_problem or f"{type(error).__name__}: {' '.join(str(error).split())[:MAX_REASON_LENGTH]}"
        remedy = f"set dataset.hub={repository}:CONFIGURATION" if "onfig name is missing" in reason else OFFLINE_REMEDY
        raise DataError(f"dataset.hub={name} can't be loaded from the Hugging Face hub ({reason}); {remedy}") from error
    finally:
        logging.disable(logging.NOTSET)
    if missing_splits := [split for split in required_splits if split not in hub_splits]:
        raise DataError(
            f"dataset.hub={name} has no split {missing_splits[0]!r}; it has {', '.join(hub_splits)}: "
            "choose a dataset that has this split"
        )
    frames = []
    for split_name in (*required_splits, *(split for split in optional_splits if split in hub_splits)):
        revision = (
            f"{name.partition('@')[0]}@{hub_commit(hub_splits[split_name]) or name.partition('@')[2] or 'unknown'}"
        )
        split_table = hub_splits[split_name].with_format("arrow")[:]
        frames.append(Frame(f"{name} ({split_name})", split_table, "dataset.hub", revision=revision))
    return frames


def hub_commit(split: Any) -> str:  # noqa: ANN401  datasets has no types
    """Return the commit of the hub from which a split was read; "" if the `datasets` library did not store the commit.

    The library stores the commit in the addresses of its downloads, or in the name of its cache folder.

    Args:
        split: a `datasets.Dataset`.
    """
    file_urls = [*(split.info.download_checksums or {}), *(cache_file["filename"] for cache_file in split.cache_files)]
    commits_by_file = [COMMIT_PATTERN.findall(file_url.replace(os.sep, "/")) for file_url in file_urls]
    return next((str(file_commits[-1]) for file_commits in commits_by_file if file_commits), "")


def check_network() -> str:
    """Return why the Hugging Face hub can't be reached; "" if it can.

    "" is also returned if the server answers with an error, and if its certificate is invalid.
    """
    hub_url = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(hub_url, method="HEAD"), timeout=CONNECTION_TIMEOUT_S).close()
    except urllib.error.HTTPError:
        return ""
    except OSError as error:
        network_error = getattr(error, "reason", error)
        # The library itself reports problems of certificates.
        return "" if isinstance(network_error, ssl.SSLError) else f"{hub_url}: {network_error}"
    return ""
