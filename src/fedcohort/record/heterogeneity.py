"""The name of a run's heterogeneity, as pages and MLflow show it."""

from collections.abc import Mapping
from typing import Any

from fedcohort.record.observer import RunInfo


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
