"""The name of a run's heterogeneity."""

from pathlib import Path

import pytest

from fedcohort.record.overview import name_heterogeneity
from record.example_run import make_run_info


@pytest.mark.parametrize(
    ("choices", "config", "name"),
    [
        ({"heterogeneity": "noise15", "partition": "iid", "label_noise": "beta"}, {}, "noise15"),
        ({"partition": "iid", "label_noise": "none"}, {}, "iid + no label noise"),
        (
            {"partition": "dirichlet", "label_noise": "beta"},
            {"partition": {"_target_": "x", "alpha": 0.1}, "label_noise": {"_target_": "y", "a": 15}},
            "dirichlet(alpha=0.1) + beta(a=15)",
        ),
        (
            {"partition": "quantity", "partition.base": "iid", "label_noise": "none", "feature_noise": "blur"},
            {"partition": {"_target_": "x", "base": {"_target_": "y"}, "law": "z"}, "feature_noise": {"sigma": 2}},
            "quantity(iid, law=z) + no label noise + blur(sigma=2) in inputs",
        ),
    ],
)
def test_heterogeneity_is_named_by_its_preset_or_its_components(
    choices: dict[str, str], config: dict[str, dict[str, object]], name: str
) -> None:
    assert name_heterogeneity(make_run_info(Path("run"), choices=choices, config=config)) == name
