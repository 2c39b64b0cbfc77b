"""The facts of a run that MLflow gets in addition to its metrics: tags, parameters, dataset and a note."""

import getpass
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedcohort.ranges import format_option_value
from fedcohort.record import provenance
from fedcohort.record.observer import RunInfo
from fedcohort.record.overview import name_heterogeneity
from fedcohort.record.tags import (
    BUDGET_TAGS,
    COMMITS_TAG,
    FORCED_RESUMES_TAG,
    ROUNDS_DONE_TAG,
    RUN_FOLDER_TAG,
    TAG_SEPARATOR,
)
from fedcohort.roles import find_role, flatten_config

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

MAX_PARAM_LENGTH = 6000  # MLflow's limits, characters
MAX_TAG_LENGTH, MAX_KEY_LENGTH = 8000, 250
UNSENT_TAGS = {"tracking"}  # only for the start-up table
PACKAGE_PREFIX = "fedcohort."  # prefix of the classes of this package
NAME_TAG = "name"  # tag: the name that a user gave the run
CONDITION_TAG = "condition"  # tag: equal for runs that differ only in their seeds
REPORT_TAG = "report"  # tag of a comparison that is stored as a run: the compared runs
FIRST_METRIC_NAME = "acc"  # the main metric again, under a name that sorts first: MLflow's compare page opens with it


def list_tags(info: RunInfo, run_status: str) -> dict[str, str]:
    """Return the MLflow tags of a run; tags whose names begin with `mlflow.` fill columns of MLflow's pages.

    The budget and the completed rounds are those of the newest start, because tags can change and parameters cannot.

    Args:
        info: metadata of the run.
        run_status: state of the run, such as "running" or "finished".
    """
    budget_tags = {k: format_option_value(v) for k, v in zip(BUDGET_TAGS, info.budget.limits, strict=True)}
    # The hash does not cover budgets, because a larger budget extends a run; a mean over runs of 2 and of 200 rounds is
    # meaningless.
    budget_texts = [f"{k}={v}" for k, v in budget_tags.items() if v != format_option_value(None)]
    tag_values = {
        **_list_choices(info),
        **{tag_name: str(v) for tag_name, v in info.tags.items() if tag_name not in UNSENT_TAGS},
        **({NAME_TAG: str(k)} if (k := info.config.get(NAME_TAG)) else {}),
        "seed": str(info.seed),
        "status": run_status,
        **budget_tags,
        ROUNDS_DONE_TAG: str(info.start),
        "config_hash": info.config_hash,
        CONDITION_TAG: " ".join([info.name.partition(f"-{info.config_hash}")[0], info.config_hash, *budget_texts]),
        "commit": info.commit,
        "dirty": str(info.dirty).lower(),
        **_list_start_tags(info),
        RUN_FOLDER_TAG: str(info.folder),
        "fedcohort": info.versions.get("fedcohort", ""),
        "mlflow.source.name": "train.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": info.commit,
        "mlflow.user": _find_user_name(),
    }
    return {tag_name[:MAX_KEY_LENGTH]: str(v)[:MAX_TAG_LENGTH] for tag_name, v in tag_values.items()}


def list_params(info: RunInfo) -> dict[str, str]:
    """Return the MLflow parameters of a run: choices, numbers of clients and parameters, and options by dotted name.

    Options that are not tracked (`OptionRole.is_tracked`) and names of classes of this package are left out.

    Args:
        info: metadata of the run.
    """
    tracked_options = ((k, v) for k, v in flatten_config(info.config) if find_role(k).is_tracked)
    options = {k: v for k, v in tracked_options if v != {} and not str(v).startswith(PACKAGE_PREFIX)}
    parameter_values = {**options, **_list_choices(info), "n_params": info.n_params, "n_clients": len(info.n_train)}
    return {k[:MAX_KEY_LENGTH]: format_option_value(v)[:MAX_PARAM_LENGTH] for k, v in parameter_values.items()}


def describe_dataset(info: RunInfo) -> "DatasetInput":
    """Return MLflow's description of the distributed data. Its digest covers the clients' sample counts and noise.

    Args:
        info: metadata of the run.
    """
    from mlflow.entities import Dataset, DatasetInput, InputTag

    client_arrays = [info.n_train, info.class_counts, info.noise_rate]
    client_arrays += [] if info.feature_noise is None else [info.feature_noise]
    data_hash = hashlib.blake2b(b"".join(a.tobytes() for a in client_arrays), digest_size=4).hexdigest()
    n_samples = int(info.class_counts.sum())
    dataset_profile = {"clients": len(info.n_train), "samples": n_samples, "classes": int(info.class_counts.shape[1])}
    dataset_source = json.dumps(info.config.get("dataset", {}), default=str)
    return DatasetInput(
        Dataset(
            info.choices.get("dataset", "data"),
            data_hash,
            "fedcohort",
            dataset_source,
            profile=json.dumps(dataset_profile),
        ),
        tags=[InputTag("mlflow.data.context", name_heterogeneity(info))],
    )


def write_run_note(summary: Mapping[str, Any]) -> str:
    """Return the description on the run's page: how the run ended, its accuracy and its folder.

    Args:
        summary: content of the run's `summary.json`.
    """
    note_parts = [
        f"**{summary.get('status')}** after {summary.get('rounds', 0)} round{'s' * (summary.get('rounds', 0) != 1)}"
    ]
    note_parts += [end_reason] if (end_reason := summary.get("end")) else []
    accuracy, best_accuracy = summary.get("final", {}).get("test/acc"), summary.get("best", {}).get("test/acc")
    note_parts += [f"test accuracy {accuracy:.2%}"] if accuracy is not None else []
    note_parts += [f"best {best_accuracy['value']:.2%} at round {best_accuracy['round']}"] if best_accuracy else []
    return ", ".join(note_parts) + f"\n\n`{summary.get('folder', '')}`"


def _list_choices(info: RunInfo) -> dict[str, str]:
    group_choices = {g: c for g, c in info.choices.items() if find_role(g).is_tracked}
    return {**group_choices, "heterogeneity": name_heterogeneity(info)}


def _list_start_tags(info: RunInfo) -> dict[str, str]:
    """Return tags on the starts of a run: number of starts, commits, and the differences that resume=force accepted.

    `info` is the metadata of the run.
    """
    if not info.starts:
        return {}
    start_tags = {
        "starts": str(len(info.starts)),
        COMMITS_TAG: TAG_SEPARATOR.join(provenance.list_commits(info.starts)),
    }
    return start_tags | (
        {FORCED_RESUMES_TAG: "; ".join(texts)} if (texts := provenance.list_forced_starts(info.starts)) else {}
    )


def _find_user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return ""
