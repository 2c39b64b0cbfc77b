"""The facts of a run before its first round, as labels and values, for the terminal and the run page."""

import math
from collections.abc import Mapping
from typing import Any

from fedcohort import units
from fedcohort.record import population
from fedcohort.record.observer import RunInfo

MAIN_GROUPS = ("experiment", "selector", "agg", "dataset", "heterogeneity", "partition", "label_noise", "model")
SET_BY_PRESET = ("partition", "label_noise")
OWN_ROWS = ("seed", "rounds", "until.virtual_s", "until.bytes", "until.acc", "until.client_flops", "until.joules")
MAX_LABELS = 12  # class names that the table lists


def describe_choices(info: RunInfo) -> str:
    """Return the main choices as text, such as `selector=flash  agg=fedavg`."""
    preset = "heterogeneity" in info.choices
    groups = [group for group in MAIN_GROUPS if group in info.choices and not (preset and group in SET_BY_PRESET)]
    return "  ".join(f"{group}={info.choices[group]}" for group in groups)


def list_run_facts(info: RunInfo) -> list[tuple[str, str]]:
    """Return (label, value) of each fact, in the order of the start-up table."""
    low, median, high = population.min_median_max(info.n_train)
    fewest_classes, median_classes, largest = population.min_median_max(population.count_classes(info.class_counts))
    n_classes = info.class_counts.shape[1]
    typed_options = [f"{name}={value}" for name, value in info.changed.items() if name not in (*MAIN_GROUPS, *OWN_ROWS)]
    classes = f"{fewest_classes:.0f} / {median_classes:.0f} / {largest:.0f} of {n_classes} per client"
    skewed = population.find_skewed(info.class_counts).mean() if len(info.n_train) else math.nan
    noise = info.noise_rate.mean() if len(info.noise_rate) else math.nan
    from_round = f", from round {info.start}" if info.start else ""
    lines = [
        ("run", describe_choices(info)),
        *([("changed", f"{'  '.join(typed_options)}  (the rest as in configs/)")] if typed_options else []),
        ("seed", f"{info.seed}  (config {info.config_hash}, commit {info.commit[:10]}{'+' if info.dirty else ''})"),
        ("rounds", f"{info.rounds}{from_round}"),
        *([("until", budget_text)] if (budget_text := info.budget.describe_ends()) else []),
        ("clients", f"{len(info.n_train)} with {low:.0f} / {median:.0f} / {high:.0f} samples (min / median / max)"),
        ("classes", classes if n_classes > 1 else "none"),
        *([("labels", describe_labels(info.labels))] if info.labels else []),
        ("skewed", f"{units.percent(skewed)} of clients; mean label noise {units.percent(noise)}"),
        *([("imbalance", describe_imbalance(info.skew))] if info.skew else []),
        *([("clients/*", sampling)] if (sampling := describe_sampling(info)) else []),
        ("parameters", f"{info.n_params:,}"),
        ("folder", str(info.folder)),
    ]
    return lines + [(name, info.tags[name]) for name in ("hub", "inputs", "engine", "tracking") if info.tags.get(name)]


def describe_sampling(info: RunInfo) -> str:
    """Return `of 1,000 of the 1,000,000 clients, the same in every round`; "" if all clients are evaluated."""
    options = info.config.get("eval", {})
    n_sampled = options.get("clients_sample")
    if not options.get("clients_every") or n_sampled is None or n_sampled >= len(info.n_train):
        return ""
    return f"of {n_sampled:,} of the {len(info.n_train):,} clients, the same in every round"


def describe_labels(names: Mapping[str, str]) -> str:
    """Return class numbers and names as text, such as `0 cat, 1 dog`; `info.json` has the complete list."""
    pairs = [f"{label_number} {name}" for label_number, name in names.items()]
    return ", ".join(pairs[:MAX_LABELS]) + (f", {len(pairs) - MAX_LABELS} more" if len(pairs) > MAX_LABELS else "")


def describe_imbalance(skew: Mapping[str, float]) -> str:
    """Return the imbalance of all data and its mean over clients, such as `classes 0.012, per client 0.31`."""
    metric_names = (("ci", "classes"), ("ai", "attributes"), ("sc", "spurious correlation"))
    measured_names = [
        (label, f"global_{name}", f"client_{name}") for name, label in metric_names if f"global_{name}" in skew
    ]
    return "; ".join(
        f"{label} {skew[pooled]:.3f}, per client {skew[mean]:.3f}" for label, pooled, mean in measured_names
    )


def name_heterogeneity(info: RunInfo) -> str:
    """Return the name of the preset, or else partition and noise, such as `dirichlet(alpha=0.5) + no label noise`."""
    if "heterogeneity" in info.choices:
        return info.choices["heterogeneity"]
    noise = "no label noise" if info.choices.get("label_noise") == "none" else _describe_choice(info, "label_noise")
    text = f"{_describe_choice(info, 'partition')} + {noise}"
    if info.choices.get("feature_noise", "none") == "none":
        return text
    return f"{text} + {_describe_choice(info, 'feature_noise')} in inputs"


def _describe_choice(info: RunInfo, group: str) -> str:
    """Return the choice of a config group with its options, such as `beta(a=15)`.

    group: name of the group; nested groups have dotted names, such as `partition.base`.
    """
    node: Any = info.config
    for name in group.split("."):
        node = node.get(name, {})
    pairs = [
        _describe_choice(info, f"{group}.{name}") if isinstance(value, Mapping) else f"{name}={value}"
        for name, value in node.items()
        if name != "_target_"
    ]
    return info.choices.get(group, "?") + (f"({', '.join(pairs)})" if pairs else "")
