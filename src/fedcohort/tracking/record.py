"""What MLflow is told about a run beside its metrics: tags, parameters, the data set, a note with the result."""

import getpass
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedcohort.record import provenance
from fedcohort.record.heterogeneity import name_heterogeneity
from fedcohort.record.observer import RunInfo
from fedcohort.record.tags import BUDGET, COMMITS, DONE, FOLDER, FORCED, SEPARATOR
from fedcohort.roles import flat, role_of

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

LONGEST_PARAM = 6000  # MLflow's limits, characters
LONGEST_TAG = 8000
LONGEST_KEY = 250
NOT_SHOWN = {"tracking"}  # a line for the start-up table, not a fact of the run
OURS = "fedcohort."
NAME = "name"  # tag: what a user calls the run, none where it has the name of its words
ALIKE = "alike"  # tag: equal for the runs that differ in nothing but their seeds
REPORT = "report"  # tag of a run that is no run but a comparison of some: which ones
FIRST = (
    "acc"  # the headline metric once more: a name that sorts before all others, on which MLflow's compare page opens
)


def tags(info: RunInfo, status: str) -> dict[str, str]:
    """Return all tags to find the run by; names with `mlflow.` fill columns of MLflow's own pages.

    BUDGET, ALIKE and DONE are those of the newest start: tags can change, parameters can't.
    """
    ends = {name: text(value) for name, value in zip(BUDGET, info.budget.ends, strict=True)}
    own = {
        **_choices(info),
        **{key: str(value) for key, value in info.tags.items() if key not in NOT_SHOWN},
        **({NAME: str(name)} if (name := info.config.get(NAME)) else {}),
        "seed": str(info.seed),
        "status": status,
        **ends,
        DONE: str(info.start),
        "config_hash": info.config_hash,
        ALIKE: _alike(info, ends),
        "commit": info.commit,
        "dirty": str(info.dirty).lower(),
        **_starts(info),
        FOLDER: str(info.folder),
        "fedcohort": info.versions.get("fedcohort", ""),
        "mlflow.source.name": "train.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": info.commit,
        "mlflow.user": _user(),
    }
    return {key[:LONGEST_KEY]: str(value)[:LONGEST_TAG] for key, value in own.items()}


def params(info: RunInfo) -> dict[str, str]:
    """The word of each group, and every scalar of the config under its dotted name."""
    options = {
        key: value
        for key, value in flat(info.config)
        if role_of(key).tracked and not isinstance(value, Mapping) and not str(value).startswith(OURS)
    }
    facts = {**options, **_choices(info), "n_params": info.n_params, "n_clients": len(info.n_train)}
    return {key[:LONGEST_KEY]: text(value)[:LONGEST_PARAM] for key, value in facts.items()}


def dataset(info: RunInfo) -> "DatasetInput":
    """The data as dealt to the clients: equal digests mean equal partition and noise."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    parts = [info.n_train, info.class_counts, info.noise_rate]
    parts += [] if info.feature_noise is None else [info.feature_noise]
    digest = hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=4).hexdigest()
    samples = int(info.class_counts.sum())
    profile = {"clients": len(info.n_train), "samples": samples, "classes": int(info.class_counts.shape[1])}
    source = json.dumps(info.config.get("dataset", {}), default=str)
    return DatasetInput(
        Dataset(info.choices.get("dataset", "data"), digest, "fedcohort", source, profile=json.dumps(profile)),
        tags=[InputTag("mlflow.data.context", name_heterogeneity(info))],
    )


def note(summary: Mapping[str, Any]) -> str:
    """The description on the run's page, where its metrics follow: how it ended, its accuracy, its folder."""
    words = [f"**{summary.get('status')}** after {summary.get('rounds')} rounds"]
    words += [why] if (why := summary.get("end")) else []
    accuracy, best = summary.get("final", {}).get("test/acc"), summary.get("best", {}).get("test/acc")
    words += [f"test accuracy {accuracy:.2%}"] if accuracy is not None else []
    words += [f"best {best['value']:.2%} at round {best['round']}"] if best else []
    return ", ".join(words) + f"\n\n`{summary.get('folder', '')}`"


def _choices(info: RunInfo) -> dict[str, str]:
    words = {group: word for group, word in info.choices.items() if role_of(group).tracked}
    return {**words, "heterogeneity": name_heterogeneity(info)}


def _alike(info: RunInfo, ends: Mapping[str, str]) -> str:
    """Return what runs have in common that differ in their seeds alone: `flash-fedavg-digits a1b2c3d4 rounds=50`.

    The hash leaves budgets out, since a larger one extends a run; but a mean over runs of 2 and of 200 rounds is of
    nothing.
    """
    asked = [f"{name}={value}" for name, value in ends.items() if value != text(None)]
    return " ".join([info.name.partition(f"-{info.config_hash}")[0], info.config_hash, *asked])


def _starts(info: RunInfo) -> dict[str, str]:
    """How often it was started and with which code; what was forced, where anything was."""
    if not info.starts:
        return {}
    found = {"starts": str(len(info.starts)), COMMITS: SEPARATOR.join(provenance.commits(info.starts))}
    return found | ({FORCED: "; ".join(sentences)} if (sentences := provenance.list_forced(info.starts)) else {})


def text(value: object) -> str:
    """`value` as it is written in yaml and on the command line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return ""
