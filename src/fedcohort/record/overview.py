"""The facts of a run before its first round, as labels and values, for the terminal and the run page."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcohort import units
from fedcohort.record import population
from fedcohort.record.observer import RunInfo

START_TABLE_GROUPS = ("experiment", "selector", "agg", "dataset", "heterogeneity", "partition", "label_noise", "model")
GROUPS_SET_BY_PRESET = ("partition", "label_noise")
START_TABLE_OPTIONS = (
    *(*START_TABLE_GROUPS, "seed", "rounds"),
    *("until.virtual_s", "until.bytes", "until.acc", "until.client_flops", "until.joules"),
)
MAX_LISTED_CLASS_NAMES = 12  # class names that the table lists


def describe_choices(info: RunInfo) -> str:
    """Return the main choices of a run with metadata `info` as text, such as `selector=flash  agg=fedavg`."""
    hidden_groups = GROUPS_SET_BY_PRESET if "heterogeneity" in info.choices else ()
    shown_groups = [g for g in START_TABLE_GROUPS if g in info.choices and g not in hidden_groups]
    return "  ".join(f"{g}={info.choices[g]}" for g in shown_groups)


def list_run_facts(info: RunInfo) -> list[tuple[str, str]]:
    """Return label and value of each fact in the start-up table, given a run's metadata `info`."""
    client_sizes_text = _describe_range(info.n_train)
    classes_text = f"{_describe_range((info.class_counts > 0).sum(axis=1))} of {info.class_counts.shape[1]}"
    typed_options = [f"{k}={v}" for k, v in info.changed.items() if k not in START_TABLE_OPTIONS]
    skewed_share, mean_noise = population.find_skewed_clients(info.class_counts).mean(), info.noise_rate.mean()
    start_round_text = f", from round {info.start}" if info.start else ""
    run_facts = [
        ("run", describe_choices(info)),
        *([("changed", f"{'  '.join(typed_options)}  (the rest as in configs/)")] if typed_options else []),
        ("seed", f"{info.seed}  (config {info.config_hash}, commit {info.commit[:10]}{'+' if info.dirty else ''})"),
        ("rounds", f"{info.rounds}{start_round_text}"),
        *([("until", budget_text)] if (budget_text := info.budget.describe_until_limits()) else []),
        ("clients", f"{len(info.n_train)} with {client_sizes_text} samples (min / median / max)"),
        ("classes", f"{classes_text} per client" if info.class_counts.shape[1] > 1 else "none"),
        *([("labels", describe_class_names(info.labels))] if info.labels else []),
        ("label skew", f"{units.format_percent(skewed_share)} of the clients"),
        ("label noise", f"{units.format_percent(mean_noise)} of a client's labels, mean over the clients"),
        *([("imbalance", describe_imbalance(info.skew))] if info.skew else []),
        *([("clients/*", sampling_text)] if (sampling_text := describe_sampling(info)) else []),
        ("parameters", f"{info.n_params:,}"),
        ("folder", str(info.folder)),
    ]
    return run_facts + [(k, info.tags[k]) for k in ("hub", "inputs", "engine", "tracking") if info.tags.get(k)]


def _describe_range(client_values: np.ndarray) -> str:
    return " / ".join(f"{v:.0f}" for v in (client_values.min(), np.median(client_values), client_values.max()))


def describe_sampling(info: RunInfo) -> str:
    """Return a text on the evaluated clients: `of 1,000 of the 1,000,000 clients, the same in every round`.

    The text is "" if all clients are evaluated. `info` is the metadata of the run.
    """
    eval_options = info.config.get("eval", {})
    n_sampled_clients = eval_options.get("clients_sample")
    if not eval_options.get("clients_every") or n_sampled_clients is None or n_sampled_clients >= len(info.n_train):
        return ""
    return f"of {n_sampled_clients:,} of the {len(info.n_train):,} clients, the same in every round"


def describe_class_names(class_names: Mapping[str, str]) -> str:
    """Return numbers and names of classes as text, such as `0 cat, 1 dog`; long lists are cut.

    Args:
        class_names: name of each class by its number.
    """
    labels = [f"{class_number} {k}" for class_number, k in class_names.items()]
    return ", ".join(labels[:MAX_LISTED_CLASS_NAMES]) + (
        f", {len(labels) - MAX_LISTED_CLASS_NAMES} more" if len(labels) > MAX_LISTED_CLASS_NAMES else ""
    )


def describe_imbalance(skew: Mapping[str, float]) -> str:
    """Return the imbalance of the pooled data and the clients' mean imbalance, each in [0, 1].

    An example is `classes 0.012, per client 0.310  (0: none, 1: complete)`.

    Args:
        skew: imbalance metrics by name (`skew.skew_metrics`).
    """
    metric_names = (("ci", "classes"), ("ai", "attributes"), ("sc", "spurious correlation"))
    measured_metrics = [(label, f"global_{k}", f"client_{k}") for k, label in metric_names if f"global_{k}" in skew]
    metric_texts = [f"{label} {skew[g]:.3f}, per client {skew[c]:.3f}" for label, g, c in measured_metrics]
    return f"{'; '.join(metric_texts)}  (0: none, 1: complete)"


def name_heterogeneity(info: RunInfo) -> str:
    """Return the run's choice of the config group `heterogeneity`, which sets partition and noise together.

    A run without one is described by its partition and noise: `dirichlet(alpha=0.5) + no label noise`.

    Args:
        info: metadata of the run.
    """
    if "heterogeneity" in info.choices:
        return info.choices["heterogeneity"]
    has_clean_labels = info.choices.get("label_noise") == "none"
    label_noise_text = "no label noise" if has_clean_labels else _describe_group_choice(info, "label_noise")
    heterogeneity_text = f"{_describe_group_choice(info, 'partition')} + {label_noise_text}"
    if info.choices.get("feature_noise", "none") == "none":
        return heterogeneity_text
    return f"{heterogeneity_text} + {_describe_group_choice(info, 'feature_noise')} in inputs"


def _describe_group_choice(info: RunInfo, group: str) -> str:
    """Return the choice of a config group with its options, such as `beta(a=15)`.

    Args:
        info: metadata of the run.
        group: name of the group; nested groups have dotted names, such as `partition.base`.
    """
    config_node: Any = info.config
    for k in group.split("."):
        config_node = config_node.get(k, {})
    option_texts = [
        _describe_group_choice(info, f"{group}.{k}") if isinstance(v, Mapping) else f"{k}={v}"
        for k, v in config_node.items()
        if k != "_target_"
    ]
    return info.choices.get(group, "?") + (f"({', '.join(option_texts)})" if option_texts else "")
