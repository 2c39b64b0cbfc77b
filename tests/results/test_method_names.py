"""Published names of methods: each option and each method of a committed study has one, and a group."""

from pathlib import Path

import pandas as pd

from case_loop import for_all
from fedcohort.results.method_names import METHOD_GROUPS, METHOD_NAMES, describe_method, name_method

ROOT = Path(__file__).parents[2]


@for_all(
    "method, name, group",
    [
        ("powd", "pow-d", "published"),  # from the docstring of its module
        ("fedcbs", "Fed-CBS", "published"),
        ("scaffold", "SCAFFOLD", "published"),
        ("powd_mean", "pow-d, plain mean", "published"),  # from the table
        ("flash_whitened", "FLASH, whitened", "ours"),  # variants of a known name
        ("flash_whitened_tuned", "FLASH, whitened, tuned", "tuned"),
        ("low_ratio", "Low-ratio rule", "ours"),  # its docstring cites no paper
        ("oracle_clean", "Clean oracle", "oracles"),
        ("restless_bandit", "Markov bandit", "stand-ins"),
        ("my_own", "my_own", "ours"),  # of a user
        ("0.1", "0.1", "ours"),
    ],
)
def test_methods_have_published_names_and_groups(method: str, name: str, group: str) -> None:
    assert describe_method(method) == (name, group)


def test_every_method_of_the_repository_has_a_published_name() -> None:
    options = {path.stem for folder in ("selector", "agg") for path in (ROOT / "configs" / folder).glob("*.yaml")}
    for path in ROOT.glob("studies/*/results.parquet"):
        options |= {name for name in pd.read_parquet(path, columns=["selector"])["selector"] if ":" not in name}
    names = {option: name_method(option) for option in options}
    assert {option for option, name in names.items() if option == name} <= {"random"}
    assert all("_" not in name and len(name) <= 30 for name in names.values())
    assert len(set(names.values())) == len(names)
    assert {group for _, group in METHOD_NAMES.values()} <= set(METHOD_GROUPS)
    assert METHOD_NAMES.keys() <= options
